package store

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// The stored part of a key stays small, so that a view of all parked events reads little. An
// earlier release refuses a lane that it would not find.
func TestTheStateOfALongKeyIsSmall(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		p, me := e.Partition("orders", "printer", 0), tenure(alice, 1)
		for i, entry := range e.begin(p, 3) {
			key := []string{"ada", strings.Repeat("k", 1<<20), "\xff"}[i]
			s := RetryState{Attempts: 1, Lane: KeyLane(key)}
			s.SetKey(key)
			e.must(e.Park(e.ctx(), p, me, 0, parkings([]redisconn.Entry{entry}, s)))
			text := try(e.raw.HGet(e.ctx(), p.Retry, entry.ID).Result()).must(t)
			if old := strings.HasPrefix(text, `{"v":1,"lane":"kada","key":"ada","n":1`); len(text) > 2000 || old != (key == "ada") || !old && !strings.HasPrefix(text, `{"v":2,`) {
				t.Errorf("key %.10q is stored as %.100q, %d bytes", key, text, len(text))
			}
			got := e.retries(p)[i]
			equal(t, "the lane", got.Lane, s.Lane)
			equal(t, "its key", []bool{got.HasKey(key), got.HasKey(key + "x")}, []bool{true, false})
		}
		long := strings.Repeat("m", 5000)
		e.must(e.raw.HSet(e.ctx(), p.Retry, "9-9", `{"v":1,"lane":"k`+long+`","key":"`+long+`","n":1}`).Err())
		old := e.retries(p)[3]
		equal(t, "the lane by an earlier release", []any{old.Lane, old.HasKey(long), len(old.Key) < 2000}, []any{KeyLane(long), true, true})
	})
}
