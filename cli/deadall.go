package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

// A listedDead is what `dead ls` tells without an argument: a processor with dead letters, or
// with partitions of which that is not known.
type listedDead struct {
	Stream    string            `json:"stream"`
	Processor string            `json:"processor"`
	Dead      int64             `json:"dead"`
	Unknown   int               `json:"unknown"`          // partitions that could not be looked at
	Newest    *admin.DeadLetter `json:"newest,omitempty"` // that died last
}

// runDeadOverview lists the processors that have dead letters.
func runDeadOverview(ctx context.Context, s *session, c *cli.Context) error {
	for _, f := range deadFlags() {
		if c.IsSet(f.Names()[0]) {
			return usagef(c, "which processor? say STREAM/PROCESSOR; without it there is a list of processors, and no flag narrows that down")
		}
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	state, err := inspect.App(ctx, s.client, "", 0)
	if err != nil {
		return err
	}
	list := []listedDead{}
	for _, st := range state.Streams {
		for _, p := range st.Processors {
			if p.Totals.Dead == 0 && p.Totals.Unknown == 0 {
				continue
			}
			newest, err := s.admin.DeadLetters(p.Stream, p.Processor).Newest(ctx)
			if err != nil && p.Totals.Unknown == 0 { // else that is told by their number
				return err
			}
			list = append(list, listedDead{p.Stream, p.Processor, p.Totals.Dead, p.Totals.Unknown, newest})
		}
	}
	return s.out.write(list, func(w io.Writer) error { return writeDeadOverview(w, list, time.Now()) })
}

func writeDeadOverview(w io.Writer, list []listedDead, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROCESSOR\tDEAD\tNEWEST\tKEY\tDIED\tREASON\tERROR")
	see := ""
	for _, l := range list {
		d := admin.DeadLetter{}
		if l.Newest != nil {
			d = *l.Newest
			see = fmt.Sprintf("dead ls %s/%s lists them, dead show %s/%s --id %s shows one", l.Stream, l.Processor, l.Stream, l.Processor, d.ID)
		}
		died := &d.Died
		if l.Newest == nil {
			died = nil
		}
		printf(t, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Stream, l.Processor, words.AtLeast(l.Dead, l.Unknown > 0), words.Dash(d.ID), words.Dash(d.Key),
			words.Ago(now, died), words.Dash(d.Reason), words.Dash(words.Summary(d.Error)))
	}
	if see != "" {
		printf(t, "%s\n", see)
	}
	return t.Flush()
}
