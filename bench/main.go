package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	if text := os.Getenv(childVariable); text != "" {
		if err := childMain(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := benchMain(context.Background(), os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// benchMain runs the cases that the arguments ask for and writes the report.
func benchMain(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	names := flags.String("cases", "", "names of cases, with commas between them; stage is also stage-put and others that begin so; none = all: "+strings.Join(caseNames(), ","))
	pairs := flags.Int("pairs", 15, "rounds per case; an interval of 95 % needs 6, a judgement 15")
	events := flags.Int("events", 500_000, "events of a backlog")
	quick := flags.Bool("quick", false, "two rounds of small cases, to see that all works")
	out := flags.String("out", "", "directory of the report (default ../docs/benchmarks; out with -quick)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &Bench{pairs: *pairs, events: *events, quick: *quick, log: log}
	dir := cmp.Or(*out, "../docs/benchmarks")
	if *quick {
		dir = cmp.Or(*out, "out")
		b.pairs, b.events = min(b.pairs, 2), min(b.events, 50_000)
	}
	chosen, err := chooseCases(*names)
	if err != nil {
		return err
	}
	m := machine(ctx)
	b.commit, b.kernel = m.Commit, m.Kernel
	kept, err := keep(dir, m, chosen)
	if err != nil && !*quick {
		return err
	}
	r := Report{Machine: m, Command: strings.Join(append([]string{"go run ."}, args...), " "), Quick: *quick, Pairs: b.pairs, Began: time.Now()}
	if !*quick {
		r.Outcomes = kept
	}
	var ended []string
	for _, c := range chosen {
		o := b.Case(ctx, c)
		if o.Error != "" {
			ended = append(ended, c.Name)
		}
		r.put(o)
		if err := r.write(dir); err != nil { // all of it, so that a run may be broken off
			return err
		}
	}
	fmt.Fprintln(log, "the report is in", dir)
	if len(ended) > 0 {
		return fmt.Errorf("ended early: %s", strings.Join(ended, ", "))
	}
	return nil
}

func caseNames() (names []string) {
	for _, c := range cases {
		names = append(names, c.Name)
	}
	return names
}

// chooseCases returns the cases of these names, each with those whose name goes on with a dash.
func chooseCases(names string) (out []Case, err error) {
	if names == "" {
		return cases, nil
	}
	asked := strings.Split(names, ",")
	missing := slices.Clone(asked)
	for _, c := range cases {
		stands := func(name string) bool {
			name = strings.TrimSpace(name)
			return c.Name == name || strings.HasPrefix(c.Name, name+"-")
		}
		if slices.ContainsFunc(asked, stands) {
			out = append(out, c)
		}
		missing = slices.DeleteFunc(missing, stands)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no case %q; there are %s", missing[0], strings.Join(caseNames(), ", "))
	}
	return out, nil
}
