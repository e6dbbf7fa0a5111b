package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

func workersCommand(p *program) *cobra.Command {
	ls := p.command("ls [STREAM[/PROCESSOR]]", "list the workers of processors: whether they live, and which partitions they are assigned and own", nil, connected(runWorkersLs),
		"PROG workers ls",
		"PROG workers ls orders/printer --output json")
	drain := p.command("drain WORKER [STREAM/PROCESSOR]", "take all partitions from a worker, and give it no others, until undrain",
		flagList{newFlag(flagWait, false, "return when it owns nothing any more; code 3 if it keeps partitions")}, runDrain,
		"PROG workers drain web-1 --wait",
		"PROG workers drain web-1 orders/printer")
	undrain := p.command("undrain WORKER [STREAM/PROCESSOR]", "give a drained worker its share again", nil, runDrain,
		"PROG workers undrain web-1")
	return p.group("workers", "see and steer workers", ls, drain, undrain)
}

// A listedMember is what `workers ls` prints.
type listedMember struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`
	inspect.MemberState
	Owned []int `json:"owned"` // partitions whose lock it holds
}

func runWorkersLs(ctx context.Context, s *session, _ *call) error {
	state, err := s.look(ctx, 0)
	if err != nil {
		return err
	}
	list, gone := []listedMember{}, []string{} // drains and pins of workers that are gone
	for _, p := range state.Processors() {
		if p.MembersErr != "" {
			return errors.New(p.MembersErr)
		}
		list = append(list, membersOf(p)...)
		for _, l := range steering(p) {
			if l.gone != "" {
				gone = append(gone, fmt.Sprintf("%s/%s: %s", p.Stream, p.Processor, l))
			}
		}
	}
	return s.out.table(list, func(t table) {
		now := time.Now()
		fmt.Fprintln(t, "PROCESSOR\tWORKER\tEXECUTOR\tJOINED\tHEARTBEAT\tASSIGNED\tOWNED\tPINNED\tDRAINED")
		for _, m := range list {
			t.row(m.Stream+"/"+m.Processor, m.Worker, m.Executor, words.Short(now.Sub(m.JoinedAt))+" ago", beatOf(m.MemberState),
				rebalance.Ranges(m.Assigned), rebalance.Ranges(m.Owned), rangesOf(m.Pinned), words.Ago(now, m.Drained))
		}
		for _, l := range gone {
			t.linef("%s", l)
		}
	})
}

func membersOf(p *inspect.ProcessorState) (out []listedMember) {
	for _, m := range p.Members {
		one := listedMember{Stream: p.Stream, Processor: p.Processor, MemberState: m, Owned: []int{}}
		for _, s := range p.Partitions {
			if s.Executor == m.Executor {
				one.Owned = append(one.Owned, s.Partition)
			}
		}
		out = append(out, one)
	}
	return out
}

// beatOf describes how long a member still counts as alive.
func beatOf(m inspect.MemberState) string {
	if !m.Alive {
		return "dead"
	}
	return "expires in " + words.Short(time.Duration(m.HeartbeatLeft)*time.Millisecond)
}

// runDrain is drain and undrain.
func runDrain(ctx context.Context, s *session, c *call) error {
	w := admin.WorkerOf{Name: c.arg(0)}
	w.Stream, w.Processor, _ = strings.Cut(c.arg(1), "/")
	if w.Name == "" || len(c.args) > 2 || len(c.args) == 2 && (w.Stream == "" || w.Processor == "") {
		return usagef(c, "say a worker, and STREAM/PROCESSOR if it is not about all of them")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	workers, end := s.admin.Workers(), c.Name() == "undrain"
	change := workers.Drain
	if end {
		change = workers.Undrain
	}
	all, err := change(ctx, w)
	if err != nil {
		return err
	}
	kept := 0
	for _, one := range all {
		kept += one.Keeps
	}
	wait := !end && c.Bool(flagWait)
	if wait {
		if err := workers.AwaitDrained(ctx, all); err != nil {
			return err
		}
		s.far.done()
	}
	worker, of := all[0].Worker, words.Plural(len(all), "processor")
	switch {
	case end:
		return s.out.line(all, "worker %s gets its share of %s again", worker, of)
	case kept == 0:
		return s.out.line(all, "worker %s gets no partitions of %s any more", worker, of)
	}
	err = s.out.line(all, "worker %s is drained for %s, and keeps %s: pinned to it, or every worker is drained", worker, of, words.Plural(kept, "partition"))
	if err == nil && wait {
		return exitThreshold
	}
	return err
}
