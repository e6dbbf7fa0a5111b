package runnel_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// syncLog keeps what is logged, also by several goroutines.
type syncLog struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *syncLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (l *syncLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// LogHandler adds to the user's lines where they come from, and nothing to those
// that come from elsewhere.
func TestLogHandlerSaysWhereALineComesFrom(t *testing.T) {
	var own syncLog
	log := slog.New(runnel.LogHandler(slog.NewTextHandler(&own, nil)))
	fn := func(ctx context.Context, ev *runnel.Events[item]) error {
		log.InfoContext(ctx, "before")
		for e, i := range ev.All() {
			log.InfoContext(ev.Context(), "record", "n", i.N, "id", e.ID)
			log.Info("no context")
		}
		log.InfoContext(ctx, "behind")
		return nil
	}
	cluster(t, 1, fn, nil, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "mill")
		send(7)
		c.Wait(func() bool { return strings.Contains(own.text(), "n=7") })
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{
		`msg=before worker=mill stream=items processor=p partition=0\n`,
		`msg=record n=7 id=(\d+-\d+) worker=mill stream=items processor=p partition=0 event=0/(\d+-\d+)\n`,
		`msg="no context"\n`,
		`msg=behind worker=mill stream=items processor=p partition=0\n`,
	} {
		m := regexp.MustCompile(want).FindStringSubmatch(own.text())
		if m == nil || len(m) == 3 && m[1] != m[2] {
			t.Errorf("no line %s in\n%s", want, own.text())
		}
	}
}

func TestLogHandlerOfABatchNamesItsFirstEvent(t *testing.T) {
	var own syncLog
	log := slog.New(runnel.LogHandler(slog.NewTextHandler(&own, nil))).With("a", 1)
	s := declareItems(runnel.EachBatch(3, 0, func(ctx context.Context, _ []*runnel.Event, _ []item) error {
		log.InfoContext(ctx, "batch")
		return nil
	}), nil)
	runneltest.Events(t, s, "p").Partition(4).Records(items(1, 2, 3, 4)...).Run()
	text := own.text()
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, "msg=batch a=1 ") || !strings.Contains(text, "partition=4 event=4/1-0\n") || !strings.Contains(text, "partition=4 event=4/4-0\n") {
		t.Errorf("logged\n%s", text)
	}
	h := runnel.LogHandler(slog.NewTextHandler(&own, nil))
	if runnel.LogHandler(h) != h {
		t.Error("a LogHandler is wrapped again")
	}
}

// What the framework itself says loudly, with the keys that operators filter by.
func TestTroubleIsLoggedWithItsPlace(t *testing.T) {
	for _, tt := range []struct {
		policy runnel.Policy
		want   string
	}{
		{runnel.Quarantine, `level=ERROR msg="partition quarantined: .*" app=contract .*stream=items processor=p .*partition=0 .*err="event \d+/\d+-\d+: bad"`},
		{runnel.Ignore, `level=WARN msg="error ignored" app=contract .*stream=items processor=p .*partition=0 .*events=1 err="event \d+/\d+-\d+: bad"`},
		{runnel.Halt, `level=ERROR msg="worker halts" app=contract .*err="stream items partition 0 processor p: event \d+/\d+-\d+: bad"`},
	} {
		t.Run(tt.policy.String(), func(t *testing.T) {
			var log syncLog
			logged(t, &log, failAt, &runnel.ProcessorOptions{OnError: tt.policy}, func(c *runneltest.Cluster, w *runneltest.Worker, send func(...int)) {
				send(2)
				c.Wait(func() bool { return regexp.MustCompile(tt.want).MatchString(log.text()) })
				if tt.policy == runnel.Halt {
					<-w.Done()
					wantErr(t, w.Err(), errBad)
				}
			})
		})
	}
}

func TestAStuckFunctionIsReportedOnRelease(t *testing.T) {
	var n notes
	var log syncLog
	opts := &runnel.ProcessorOptions{Grace: time.Second}
	logged(t, &log, busy(&n, time.Minute, false), opts, func(c *runneltest.Cluster, w *runneltest.Worker, send func(...int)) {
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		// Out of the membership, it has to give the partition back.
		if err := c.Redis().Del(c.Context(), "__memb:contract.items.p").Err(); err != nil {
			t.Fatal(err)
		}
		c.Wait(func() bool { return strings.Contains(log.text(), "function is stuck") })
		if !regexp.MustCompile(`level=ERROR msg="function is stuck.* app=contract .*stream=items processor=p .*partition=0`).MatchString(log.text()) {
			t.Errorf("the log lacks its place:\n%s", log.text())
		}
		c.Wait(func() bool { return n.has("a ends") })
	})
}

// logged simulates a worker "a", ready, of one partition, whose log is kept.
func logged(t *testing.T, log *syncLog, fn runnel.ProcessFunc[item], opts *runnel.ProcessorOptions,
	run func(c *runneltest.Cluster, w *runneltest.Worker, send func(...int))) {
	t.Helper()
	one := &runnel.StreamOptions{Partitions: 1}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		o.Logger = log.logger()
		app := runnel.New("contract", o)
		runnel.NewStream(app, "items", keyOfItem, one).Process("p", fn, opts)
		return app
	}, func(c *runneltest.Cluster) {
		app := runnel.New("contract", c.Options("sender"))
		defer app.Close()
		s := runnel.NewStream(app, "items", keyOfItem, one)
		run(c, ready(c, "a"), func(numbers ...int) {
			if err := s.Send(c.Context(), items(numbers...)...); err != nil {
				t.Error(err)
			}
		})
	})
}
