package runneltest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/runneltest"
)

// Rows that have ended leave Redis though no further event comes, and no earlier than a minute behind their end.
func TestRowsLeaveIdlePartitions(t *testing.T) {
	const parts, events, ttl = 3, 300, 10 * time.Second
	build := func(o *runnel.Options) *runnel.App {
		app := runnel.New("sim", o)
		in := runnel.NewStream(app, "in", func(key string) string { return key }, &runnel.StreamOptions{Partitions: parts})
		seen := runnel.NewTable[bool](in, "seen", &runnel.TableOptions{TTL: ttl})
		in.Process("note", runnel.Each(func(ctx context.Context, _ *runnel.Event, key string) error {
			seen.Rows(ctx).Set(key, true)
			return nil
		}), &runnel.ProcessorOptions{Tables: []runnel.State{seen}})
		return app
	}
	runneltest.Sim(t, build, func(c *runneltest.Cluster) {
		rows := func() (n int64) {
			for p := range parts {
				n += c.Redis().HLen(c.Context(), keys.MustKind("rows").Key(keys.Keys{App: "sim", Layout: keys.Standalone}, "in", "seen", "", p)).Val()
			}
			return n
		}
		app := runnel.New("sim", c.Options("producer"))
		defer app.Close()
		in := runnel.NewStream(app, "in", func(key string) string { return key }, &runnel.StreamOptions{Partitions: parts})
		w := c.Start("worker")
		for i := range events {
			if err := in.Send(c.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		c.Wait(func() bool { return rows() == events })
		c.Sleep(time.Minute)
		if n := rows(); n != events {
			t.Errorf("%d rows a minute later", n)
		}
		c.Sleep(3 * time.Minute)
		if n := rows(); n != 0 {
			t.Errorf("%d rows at last", n)
		}
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
}
