package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// If a partition runs out of IDs within a batch, what is in is reported as in.
func TestAppendToAPartitionThatRunsOutOfIDs(t *testing.T) {
	const most = "18446744073709551615"
	plain, wide, mixed := [][]string{}, records(0, 4), append(records(0, 1), []string{"data", "x"}, []string{"data", "y"}, []string{"data", "z"})
	for i := range 4 {
		plain = append(plain, []string{"n", fmt.Sprint(i)})
	}
	for _, tt := range []struct {
		name    string
		records [][]string
		ids     []string
		left    int // IDs
	}{
		{"plain", plain, nil, 2}, {"plain, the first is refused", plain, nil, 0}, {"plain, the last is refused", plain, nil, 3},
		{"several fields", wide, nil, 2}, {"several fields, the first is refused", wide, nil, 0},
		{"several shapes", mixed, nil, 2},
		{"with IDs", wide, []string{"a", "b", "c", "d"}, 2}, {"with an ID that was sent twice", wide, []string{"a", "a", "c", "d"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := realEnv(t)
			e.bounded(100, OverflowReject, "printer")
			log, other := e.Partition("orders", "", 0).Log, e.Partition("orders", "", 1).Log
			e.add(log, most+"-18446744073709551"+fmt.Sprint(615-tt.left))
			out := e.Append(e.ctx(), []Append{
				{Stream: "orders", Log: log, Records: tt.records, IDs: tt.ids},
				{Stream: "orders", Partition: 1, Log: other, Records: tt.records[:1]},
			})
			in := tt.left
			if out[0].Duplicate != nil {
				in++
			}
			if out[0].Err == nil || !strings.Contains(out[0].Err.Error(), "last possible ID") || out[0].Unknown || len(out[0].IDs) != in {
				t.Errorf("%d IDs left: got %+v", tt.left, out[0])
			}
			equal(t, "length", e.raw.XLen(e.ctx(), log).Val(), int64(1+tt.left))
			e.must(out[1].Err)
			equal(t, "length of the other one", e.raw.XLen(e.ctx(), other).Val(), 1)
		})
	}
}

// A target that runs out of IDs in a hop.
func TestAHopToAnExhaustedTargetLosesNothing(t *testing.T) {
	tagged(t, func(t *testing.T, e *env) {
		s := e.sender("printer", alice)
		full := e.keys.Partition("bills", 1)
		e.must(e.raw.Do(e.ctx(), "XADD", full, "18446744073709551615-18446744073709551615", "data", "last").Err())
		s.emit(1, 1, 1)
		c := e.NewCourier(s.p)
		for range 20 {
			try2(c.Round(e.ctx())).must(t)
			if c.Carries() == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		e.must(e.raw.Del(e.ctx(), full).Err()) // an operator's cure
		e.carry(c)
		if n := len(e.came(1)); n != 3 {
			t.Errorf("%d outputs came, want 3", n)
		}
	})
}
