package runneltest_test

import (
	"context"
	"errors"
	"fmt"
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
func offers() *stage.Set[offer] {
	s := stage.New(runnel.New("shop", nil), "offers", func(o offer) string { return o.ID }, nil)
	s.Stage("count", func(o offer) bool { return o.N < 2 }, func(ctx context.Context, o *offer) (stage.Result, error) {
		if v, _ := stage.VisitOf(ctx); o.ID == "shaky" && v.Attempt < 3 {
			return stage.Updated, errors.New("not now")
		}
		o.N++
		return stage.Updated, nil
	}, &stage.StageOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: time.Second, Jitter: -1}})
	s.Stage("end", func(o offer) bool { return !o.Over }, func(ctx context.Context, o *offer) (stage.Result, error) {
		if stage.Now(ctx).Before(o.Until) {
			return stage.Untouched.At(o.Until), nil
		}
		o.Over = true
		return stage.Updated, nil
	}, nil)
	s.Stage("forget", func(o offer) bool { return o.Over && o.ID == "gone" }, func(context.Context, *offer) (stage.Result, error) {
		return stage.Deleted, nil
	}, nil)
	return s
}

func told(visits []runneltest.StageVisit) (out []string) {
	for _, v := range visits {
		out = append(out, fmt.Sprint(v.Stage, " ", v.Attempt, " ", v.Result, " ", v.At.Round(time.Second)))
	}
	return out
}

func TestSettlePlaysToTheFixpoint(t *testing.T) {
	for id, want := range map[string][]string{
		"a":     {"count 1 updated 0s", "count 1 updated 0s", "end 1 untouched 0s", "end 1 updated 1h0m0s"},
		"shaky": {"count 1 failed 0s", "end 1 untouched 0s", "count 2 failed 1s", "count 3 updated 3s", "count 1 failed 3s", "end 1 untouched 3s", "count 2 failed 4s", "count 3 updated 6s", "end 1 untouched 6s", "end 1 updated 1h0m0s"},
		"gone":  {"count 1 updated 0s", "count 1 updated 0s", "end 1 untouched 0s", "end 1 updated 1h0m0s", "forget 1 deleted 1h0m0s"},
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
