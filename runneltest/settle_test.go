package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/stage"
)

type offer struct {
	ID    string
	N     int
	Until time.Time
	Over  bool
}

// offers declares a set with stages that fail, wait and end.
func offers() *stage.Set[offer] { return offersOf(runnel.New("shop", nil), func(stage.Visit) {}) }

// offersOf is offers of an app, and notes each visit that changes its offer or fails.
func offersOf(app *runnel.App, note func(stage.Visit)) *stage.Set[offer] {
	s := stage.New(app, "offers", func(o offer) string { return o.ID }, nil)
	add := func(name string, when func(o offer) bool, do stage.Func[offer]) {
		s.Stage(name, when, func(ctx context.Context, o *offer) (stage.Result, error) {
			r, err := do(ctx, o)
			if v, _ := stage.VisitOf(ctx); err != nil || r == stage.Updated || r == stage.Deleted {
				note(v)
			}
			return r, err
		}, &stage.StageOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: time.Second, Jitter: -1}})
	}
	add("count", func(o offer) bool { return o.N < 2 }, func(ctx context.Context, o *offer) (stage.Result, error) {
		if v, _ := stage.VisitOf(ctx); o.ID == "shaky" && v.Attempt < 3 {
			return stage.Updated, errors.New("not now")
		}
		o.N++
		return stage.Updated, nil
	})
	add("end", func(o offer) bool { return !o.Over }, func(ctx context.Context, o *offer) (stage.Result, error) {
		if stage.Now(ctx).Before(o.Until) {
			return stage.Untouched.At(o.Until), nil
		}
		o.Over = true
		return stage.Updated, nil
	})
	add("hopeless", func(o offer) bool { return o.ID == "fails" }, func(_ context.Context, o *offer) (stage.Result, error) {
		o.ID = "another" // which no stage may change
		return stage.Updated, nil
	})
	add("forget", func(o offer) bool { return o.Over && o.ID == "gone" }, func(context.Context, *offer) (stage.Result, error) {
		return stage.Deleted, nil
	})
	return s
}

func told(visits []runneltest.StageVisit) (out []string) {
	for _, v := range visits {
		one := fmt.Sprint(v.Stage, " ", v.Attempt, " ", v.Result, " ", v.At.Round(time.Second))
		if v.Again != 0 {
			one += " again " + v.Again.Round(time.Second).String()
		}
		out = append(out, one)
	}
	return out
}

func TestSettlePlaysToTheFixpoint(t *testing.T) {
	for id, want := range map[string][]string{
		"a":     {"count 1 updated 0s", "count 1 updated 0s", "end 1 untouched 0s again 1h0m0s", "end 1 updated 1h0m0s"},
		"shaky": {"count 1 failed 0s again 1s", "end 1 untouched 0s again 1h0m0s", "count 2 failed 1s again 3s", "count 3 updated 3s", "count 1 failed 3s again 4s", "end 1 untouched 3s again 1h0m0s", "count 2 failed 4s again 6s", "count 3 updated 6s", "end 1 untouched 6s again 1h0m0s", "end 1 updated 1h0m0s"},
		"gone":  {"count 1 updated 0s", "count 1 updated 0s", "end 1 untouched 0s again 1h0m0s", "end 1 updated 1h0m0s", "forget 1 deleted 1h0m0s"},
	} {
		got := runneltest.Settle(t, offers(), offer{ID: id, Until: time.Now().Add(time.Hour)})
		if !slices.Equal(told(got.Visits), want) {
			t.Errorf("%s: %q, want %q", id, told(got.Visits), want)
		}
		if got.Value.N != 2 || !got.Value.Over || got.Deleted != (id == "gone") {
			t.Errorf("%s: %+v", id, got)
		}
	}
	one := runneltest.Visit(t, offers(), "end", offer{ID: "a"})
	if !slices.Equal(told(one.Visits), []string{"end 1 updated 0s"}) || !one.Value.Over || one.Value.N != 0 {
		t.Errorf("one visit: %+v", one)
	}
}

// Stages that never end are found.
func TestSettleFindsStagesWithoutEnd(t *testing.T) {
	for _, result := range []stage.Result{stage.Updated, stage.Untouched.After(time.Hour)} {
		s := stage.New(runnel.New("shop", nil), "offers", func(o offer) string { return o.ID }, nil)
		s.Stage("flip", nil, func(_ context.Context, o *offer) (stage.Result, error) {
			o.Over = !o.Over
			return result, nil
		}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			runneltest.Settle(&fatalTB{TB: t}, s, offer{ID: "a"})
			t.Errorf("%+v: it settles", result)
		}()
		<-done
	}
}

// A worker, with Redis and in its own time, comes to the same end by the same changes and failures of each
// stage. Between stages it has another order: it takes what is due at once, in the order in which it was put.
func TestSettlePlaysWhatAWorkerDoes(t *testing.T) {
	const lasts = 30 * time.Second
	for _, id := range []string{"a", "shaky", "fails", "gone"} {
		did, played := map[string][]int{}, map[string][]int{}
		var end offer
		var err error
		runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
			app := runnel.New("shop", o)
			offersOf(app, func(v stage.Visit) { did[v.Stage] = append(did[v.Stage], v.Attempt) })
			return app
		}, func(c *runneltest.Cluster) {
			app := runnel.New("shop", c.Options("producer"))
			defer app.Close()
			s := offersOf(app, nil)
			if err := s.Put(c.Context(), offer{ID: id, Until: time.Now().Add(lasts)}); err != nil {
				t.Fatal(err)
			}
			c.Start("a")
			c.Sleep(3 * lasts)
			var e stage.Entity[offer]
			e, err = s.Get(c.Context(), id)
			end = e.Value
		})
		got := runneltest.Settle(t, offersOf(runnel.New("shop", nil), func(v stage.Visit) { played[v.Stage] = append(played[v.Stage], v.Attempt) }),
			offer{ID: id, Until: time.Now().Add(lasts)})
		if len(did) < 2 || !reflect.DeepEqual(played, did) {
			t.Errorf("%s: played %v, a worker did %v", id, played, did)
		}
		if gone := errors.Is(err, stage.ErrNotFound); gone != got.Deleted || !gone && (err != nil || end.N != got.Value.N || end.Over != got.Value.Over) {
			t.Errorf("%s: settled %+v, a worker left %+v, %v", id, got, end, err)
		}
	}
}

type mail struct{ To string }

// What functions send is recorded. Methods of sets fail at once, whether there is a Redis or not.
func TestSettleNeedsNoRedis(t *testing.T) {
	app := runnel.New("shop", &runnel.Options{RedisURL: "redis://127.0.0.1:1"})
	mails := runnel.NewStream(app, "mails", func(m mail) string { return m.To }, nil)
	others := stage.New(app, "others", func(o offer) string { return o.ID }, nil)
	s := stage.New(app, "offers", func(o offer) string { return o.ID }, nil)
	s.Stage("mail", func(o offer) bool { return o.N == 0 }, func(ctx context.Context, o *offer) (stage.Result, error) {
		o.N++
		return stage.Updated, mails.Send(ctx, mail{o.ID})
	}, nil)
	s.Stage("copy", func(o offer) bool { return o.N == 1 }, func(ctx context.Context, o *offer) (stage.Result, error) {
		return stage.Untouched, runnel.DeadLetter(others.Put(ctx, *o))
	}, nil)
	got := runneltest.Settle(t, s, offer{ID: "a"})
	if sent := runneltest.Sent(t, got, mails); !slices.Equal(sent, []mail{{"a"}}) {
		t.Errorf("sent %v", sent)
	}
	const want = "set others: runneltest plays stage copy without Redis: the function cannot call methods of sets"
	if last := got.Visits[len(got.Visits)-1]; last.Result != "dead" || last.Err == nil || last.Err.Error() != want {
		t.Errorf("after %q: %v", told(got.Visits), last.Err)
	}
	rows := stage.NewExternal(app, "rows", func(o offer) string { return o.ID }, struct{ stage.Store[offer] }{}, nil) // which panics
	rows.Stage("close", func(o offer) bool { return !o.Over }, func(_ context.Context, o *offer) (stage.Result, error) {
		o.Over = true
		return stage.Updated, nil
	}, nil)
	if got := runneltest.Settle(t, rows, offer{ID: "a"}); !got.Value.Over || len(got.Visits) != 1 {
		t.Errorf("external: %+v", got)
	}
	sent := runneltest.Sent(t, runneltest.Visit(t, s, "mail", offer{ID: "b"}), mails)
	if !slices.Equal(sent, []mail{{"b"}}) {
		t.Errorf("a visit has sent %v", sent)
	}
}
