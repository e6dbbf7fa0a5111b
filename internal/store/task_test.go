package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestADueTimeIsClaimedOnce(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		lead := func(token string) { e.must(e.raw.Set(e.ctx(), "__leader:example", token, time.Minute).Err()) }
		look := func(token string) TaskMark {
			t.Helper()
			m := try(e.LookAtTask(e.ctx(), token, "report")).must(t)
			return m
		}
		claim := func(token string, last, due time.Time) TaskMark {
			t.Helper()
			m := try(e.ClaimTask(e.ctx(), token, "report", last, due)).must(t)
			return m
		}
		lead("a/1")
		first := look("a/1")
		if first.Claimed || !first.Last.Equal(first.Now) || time.Since(first.Now).Abs() > time.Minute {
			t.Errorf("never seen: %+v", first)
		}
		equal(t, "seen before", look("a/1").Last, first.Last) // a restart does not move it
		redistest.Eventually(t, "a later moment", func() bool { return look("a/1").Now.Sub(first.Last) > 5*time.Millisecond })

		due := first.Last.Add(2 * time.Millisecond)
		equal(t, "too early", claim("a/1", first.Last, first.Last.Add(time.Hour)).Claimed, false)
		equal(t, "unknown last", claim("a/1", first.Last.Add(-1e6), due).Claimed, false)
		equal(t, "not behind the last", claim("a/1", first.Last, first.Last).Claimed, false)
		m := claim("a/1", first.Last, due)
		if !m.Claimed || !m.Last.Equal(due) {
			t.Errorf("claimed: %+v", m)
		}
		equal(t, "again, for the reply was lost", claim("a/1", first.Last, due).Claimed, true)
		lead("b/1")
		equal(t, "by another leader", claim("b/1", first.Last, due).Claimed, false)
		equal(t, "that knows", claim("b/1", due, due).Claimed, false)
		for what, err := range map[string]error{
			"look":  second(e.LookAtTask(e.ctx(), "a/1", "report")),
			"claim": second(e.ClaimTask(e.ctx(), "a/1", "report", due, due.Add(1e6))),
		} {
			if !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "report") {
				t.Errorf("%s by a former leader: %v", what, err)
			}
		}
	})
}

func TestDurableTasksOfAnotherVersionAreRefused(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(e.raw.Set(e.ctx(), "__leader:example", "a/1", time.Minute).Err())
		e.must(e.raw.HSet(e.ctx(), "__task:example", "report", `{"v":2,"last":5}`).Err())
		_, err := e.LookAtTask(e.ctx(), "a/1", "report")
		if err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("%v", err)
		}
		equal(t, "left alone", e.raw.HGet(e.ctx(), "__task:example", "report").Val(), `{"v":2,"last":5}`)
	})
}
