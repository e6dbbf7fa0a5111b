package middleware_test

import (
	"context"
	"errors"
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

func TestExpireOfAWholeBatchCallsNobody(t *testing.T) {
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
