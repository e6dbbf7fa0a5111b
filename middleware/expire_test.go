package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/middleware"
	"github.com/runnel-go/runnel/runneltest"
)

func TestExpireSkipsOldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen [][]int
		s := stream(inBatches(&seen), runnel.Halt, middleware.Expire(time.Minute))
		now := time.Now()
		got := runneltest.Events(t, s, "p").
			Appended(now.Add(-time.Hour)).Records(Order{"a", 1}).
			Appended(now.Add(-61 * time.Second)).Records(Order{"a", 2}).
			Appended(now.Add(-time.Minute)).Records(Order{"a", 3}).
			Appended(now).Records(Order{"a", 4}).Run()
		wantSeen(t, seen, [][]int{{3, 4}})
		if len(got.Acked) != 4 || got.Err != nil {
			t.Errorf("%+v", got)
		}
	})
}

// A delayed event is as old as its due time says.
func TestExpireOfDelayedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen [][]int
		s := stream(inBatches(&seen), runnel.Halt, middleware.Expire(time.Minute))
		now := time.Now()
		delayed := func(amount int, sent, due time.Duration) map[string]string {
			return map[string]string{
				"json":   fmt.Sprintf(`{"Customer":"a","Amount":%d}`, amount),
				"__sent": fmt.Sprint(now.Add(sent).UnixMilli()), "__at": fmt.Sprint(now.Add(due).UnixMilli()),
			}
		}
		runneltest.Events(t, s, "p").Appended(now).
			Raw(delayed(1, -time.Hour, -2*time.Minute)).
			Raw(delayed(2, -time.Hour, -time.Second)).
			Raw(delayed(3, -time.Second, -time.Hour)).Run()
		wantSeen(t, seen, [][]int{{2, 3}})
	})
}

func TestExpireOfAWholeBatchCallsNothing(t *testing.T) {
	var seen [][]int
	s := stream(inBatches(&seen), runnel.Halt, middleware.Expire(time.Minute))
	wantAcked(t, runneltest.Process(t, s, "p", Order{"a", 1}, Order{"a", 2}), "1-0", "2-0") // from 1970
	wantSeen(t, seen, nil)
}

func TestExpireDoesNotBlameExpiredEvents(t *testing.T) {
	s := stream(runnel.EachBatch(10, 0, func(context.Context, []*runnel.Event, []Order) error { return errRefund }),
		runnel.Halt, middleware.Expire(time.Minute))
	got := runneltest.Events(t, s, "p").Records(Order{"a", 1}).Appended(time.Now()).Records(Order{"a", 2}).Run()
	wantAcked(t, got, "1-0")
	if !errors.Is(got.Err, errRefund) {
		t.Errorf("ended with %v", got.Err)
	}
}
