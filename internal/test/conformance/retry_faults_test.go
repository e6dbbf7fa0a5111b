package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// steps are the scripts of retried events, told apart by their arguments.
var steps = []struct {
	name  string
	texts func(r *rig) []string
}{
	{"park", func(r *rig) []string { return []string{line("5"), line(r.partition(0)), line(r.place(0).Parked)} }},
	{"attempt", func(r *rig) []string { return []string{evalOf(8), line("2"), line(r.place(0).Retry)} }},
	{"settle", func(r *rig) []string { return []string{evalOf(8), line("3"), line(r.place(0).Parked)} }},
	{"dead", func(r *rig) []string { return []string{line("6"), line(r.place(0).Dead)} }},
}

// evalOf returns the beginning of a script call with so many arguments.
func evalOf(arguments int) string { return fmt.Sprintf("*%d\r\n$7\r\nevalsha\r\n", arguments) }

var errWeather = errors.New("bad weather")

const retryAttempts = 3

// retryRig is a rig of one partition in which every fifth event fails twice and
// every seventh each time.
func retryRig(t *testing.T, srv *redistest.Server, app string, order runnel.RetryOrder, expiry time.Duration) *rig {
	r := rigOn(t, srv, app, streamName, processorName, 1, expiry)
	r.options.Retry = &runnel.Retry{Max: retryAttempts, Order: order, MinBackoff: 20 * time.Millisecond, Jitter: -1}
	r.hook(func(_ context.Context, e *runnel.Event) error {
		if e.Attempt > retryAttempts+1 {
			t.Errorf("attempt %d of event %s", e.Attempt, e.ID)
		}
		var j job
		if err := codec.MsgPack.Decode(e.Data(), &j); err != nil {
			return err
		}
		if j.Seq%7 == 0 || j.Seq%5 == 0 && e.Attempt < retryAttempts {
			return errWeather
		}
		return nil
	})
	r.warm()
	r.warmSteps()
	return r
}

func (r *rig) warmSteps() {
	ctx, p, none := context.Background(), r.client.Partition("warm", r.processor, 0), store.Claim{Executor: "nobody"}
	one := redisconn.Entry{ID: "1-0", Values: map[string]any{"a": "b"}}
	_, write := r.client.WriteRetry(ctx, p, none, store.RetryState{ID: "1-0"})
	for _, err := range []error{
		write, r.client.Park(ctx, p, none, 1, []store.Parking{{Entry: one}}), r.client.DoneRetry(ctx, p, none, "1-0"),
		r.client.DeadLetter(ctx, p, none, store.DeadLetter{Entry: one}),
	} {
		if !errors.Is(err, store.ErrFenced) {
			r.t.Fatalf("a script of no executor: %v", err)
		}
	}
}

// settled waits until nothing is parked or pending, and checks the history, dead letters included.
func (r *rig) settled(lanes history.Lanes) *history.Report {
	r.t.Helper()
	ctx := context.Background()
	r.eventually("nothing is parked", func() bool {
		if r.unrest() != "" {
			return false
		}
		states, _, err := r.client.Retries(ctx, r.place(0)) // after that: what fails leaves the one for the other
		return err == nil && len(states) == 0
	})
	letters, err := r.client.DeadLetters(ctx, r.place(0), "", 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range letters {
		var j job
		data, _ := d.Entry.Values["data"].(string)
		if err := codec.MsgPack.Decode([]byte(data), &j); err != nil {
			r.t.Fatalf("dead letter %s: %v", d.ID, err)
		}
		if j.Seq%7 != 0 || d.Attempts < retryAttempts || d.Attempts > retryAttempts+1 {
			r.t.Errorf("event %d is a dead letter after %d attempts: %s, %s", j.Seq, d.Attempts, d.Reason, d.Error)
		}
		if err := r.log.As("found").Write(history.Record{
			Kind: history.Dead, Stream: r.stream, Processor: r.processor, IDs: []string{d.Entry.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq},
		}); err != nil {
			r.t.Fatal(err)
		}
	}
	report := history.Check(r.records(), history.Options{Processors: []string{r.processor}, Lanes: lanes})
	if !report.OK {
		r.t.Error(report)
	}
	return report
}

var lanesOf = map[runnel.RetryOrder]history.Lanes{
	runnel.OrderPartition: history.LanePartition, runnel.OrderKey: history.LaneKey, runnel.OrderNone: history.LaneEvent,
}

// A worker that loses the request or the reply of a step between park, attempt, success and dead
// letter continues under the same executor ID. Nothing is lost, repeated or counted twice.
func TestBrokenRetrySteps(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, step := range steps {
		for n := 1; n <= 2; n++ {
			for h, hurt := range hurts {
				t.Run(fmt.Sprintf("%s %d %s", step.name, n, hurt.name), func(t *testing.T) {
					t.Parallel()
					order := runnel.RetryOrder(1 + (n+h)%3)
					r := retryRig(t, srv, fmt.Sprintf("retry-%s-%d-%s", step.name, n, hurt.tag), order, 20*time.Second)
					proxy := faultproxy.Start(t, srv.Addr())
					rule := proxy.On("EVALSHA", n).Containing(step.texts(r)...).Do(hurt.action)
					r.add(0, 35)
					m := r.startVia("w1", proxy)
					id := r.ready(m)
					rule.Wait(t)
					report := r.settled(lanesOf[order])
					if report.Dead != 5 || report.Repeats > 0 {
						t.Errorf("%d dead letters, %d repeats", report.Dead, report.Repeats)
					}
					r.undisturbed(m, id)
				})
			}
		}
	}
}

// Replies to the script that parks an event are late, over several refreshes. They find the event not pending any more, and do not
// take it for lost.
func TestALateParkIsNoLoss(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	r := retryRig(t, srv, "late-park", runnel.OrderKey, calm)
	proxy := faultproxy.Start(t, srv.Addr())
	late := proxy.On("EVALSHA", faultproxy.Every).Containing(steps[0].texts(r)...).Do(faultproxy.HoldReply(nil))
	r.add(0, 8)
	m := r.startVia("w1", proxy)
	id := r.ready(m)
	late.Wait(t)
	r.onRefresh(proxy, 3).Do(faultproxy.Delay(time.Millisecond)).Wait(t)
	late.Release()
	if report := r.settled(history.LaneKey); report.Dead != 1 || report.Repeats > 0 {
		t.Errorf("%d dead letters, %d repeats", report.Dead, report.Repeats)
	}
	r.undisturbed(m, id)
	if strings.Contains(m.output.String(), "taking over again") {
		t.Error("the partition was taken over again")
	}
}
