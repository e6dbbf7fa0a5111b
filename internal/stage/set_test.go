package stage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
)

// both runs a test over partition 3 of a set, which the owner "o" owns, on both servers.
func both(t *testing.T, external bool, test func(t *testing.T, s *Set, rdb *redis.Client)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		s, rdb := open(t, addr, keys.Standalone, external, "geo", "close")
		if err := rdb.HSet(t.Context(), s.place(3).Own, "tenure", "o").Err(); err != nil {
			t.Fatal(err)
		}
		test(t, s, rdb)
	})
}

func saved(t *testing.T, s *Set, changes ...Change) {
	t.Helper()
	save := &Save{Partition: 3, Changes: changes}
	if s.Save(t.Context(), save); save.Err != nil {
		t.Fatal(save.Err)
	}
}

// taken begins visits of the stages, at most so many of each.
func taken(t *testing.T, s *Set, number int64, most int, sleep bool, stages ...string) *Take {
	t.Helper()
	take := &Take{Partition: 3, Fence: "o", Number: number, Sleep: sleep, MaxBytes: 1000}
	for _, stage := range stages {
		take.Asks = append(take.Asks, Ask{stage, most})
	}
	if s.Take(t.Context(), take); take.Err != nil {
		t.Fatal(take.Err)
	}
	return take
}

func ids(visits []Visit) (out []string) {
	for _, v := range visits {
		out = append(out, v.Stage+" "+v.ID)
	}
	return out
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestLook(t *testing.T) {
	both(t, false, func(t *testing.T, s *Set, _ *redis.Client) {
		saved(t, s, Change{"a", "1", Any}, Change{"b", "2", Any}, Change{"c", "3", Any}, Change{"d", "4", Any})
		first := taken(t, s, 1, 2, false, Touch).Visits
		for _, stage := range []string{"geo", "close"} {
			if err := s.Visit(t.Context(), 3, stage, In(time.Hour), "a", "b"); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Visit(t.Context(), 3, "geo", At(time.UnixMilli(5)), "b", "c", "d"); err != nil {
			t.Fatal(err)
		}
		c := &Commit{Partition: 3, Fence: "o"}
		loop := Failure{Attempts: 1, Reason: ReasonLoop, Error: `not "reason":"loop" but this`}
		c.Ends = append(c.Ends, End{ID: first[0].ID, Number: 1, Settle: []Settlement{{Touch, Fails, In(time.Hour), loop.Text()}}})
		for i, v := range taken(t, s, 2, 3, false, "geo").Visits[:2] {
			c.Ends = append(c.Ends, End{ID: v.ID, Number: 2, Settle: []Settlement{{"geo", []What{Fails, Dies}[i], In(time.Hour), Failure{Error: `"reason":"loop"`}.Text()}}})
		}
		if s.Commit(t.Context(), c); c.Err != nil {
			t.Fatal(c.Err)
		}
		l, other := &Look{Partition: 3}, &Look{Partition: 4}
		s.Look(t.Context(), l, other)
		late := l.Counts[0].Late
		l.Counts[0].Late = 0
		want(t, "a partition", fmt.Sprintf("%+v", *l), fmt.Sprintf("%+v", Look{
			Partition: 3, Entities: 4, Failures: 3, Slowed: 1,
			Counts: []Count{{Stage: Touch, Waiting: 3, Due: 2, Running: 1, Failing: 1}, {Stage: "geo", Waiting: 2, Running: 1, Failing: 1, Dead: 1}, {Stage: "close", Waiting: 2}},
		}))
		if late < 0 || late > time.Hour || other.Entities != 0 || other.Err != nil {
			t.Errorf("late %v, another partition %+v", late, other)
		}
	})
}

// Of many failures a look counts some, which stand for all; forgetting finds each of them.
func TestManyFailures(t *testing.T) {
	both(t, false, func(t *testing.T, s *Set, rdb *redis.Client) {
		const many = 9000
		for i := range many {
			rdb.HSet(t.Context(), s.key("visitfail", 3, ""), fmt.Sprint([]string{"geo", "close", "close"}[i%3], " ", i), Failure{}.Text())
		}
		l := &Look{Partition: 3}
		s.Look(t.Context(), l)
		if geo, all := l.Counts[1].Failing, l.Counts[2].Failing+l.Counts[1].Failing; l.Failures != many || all < many-2 || all > many || geo < many/4 || geo > many/2 {
			t.Errorf("%+v", l)
		}
		pages := 0
		for cursor := "0"; cursor != "0" || pages == 0; pages++ {
			next, _, err := s.ForgetPage(t.Context(), 3, "close", cursor)
			if err != nil {
				t.Fatal(err)
			}
			cursor = next
		}
		want(t, "what is left", rdb.HLen(t.Context(), s.key("visitfail", 3, "")).Val(), int64(many/3))
	})
}

// A page touches what is there, and the pages together all of it, at their rate.
func TestTouchPages(t *testing.T) {
	both(t, false, func(t *testing.T, s *Set, rdb *redis.Client) {
		for i := range 600 {
			saved(t, s, Change{fmt.Sprint("e", i), "x", Any})
		}
		for number := int64(1); len(taken(t, s, number, 100, false, Touch).Visits) > 0; number++ {
		}
		cursor, all, pages := "0", int64(0), 0
		for first := time.Hour; cursor != "0" || pages == 0; first += time.Minute {
			next, n, err := s.TouchPage(t.Context(), 3, cursor, 100, first, time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			cursor, all, pages = next, all+n, pages+1
		}
		touches := rdb.ZRangeWithScores(t.Context(), s.queue(3, Touch), 0, -1).Val()
		if all < 600 || len(touches) != 600 || pages < 2 && len(touches) > 0 && touches[599].Score-touches[0].Score < 590 {
			t.Errorf("%d touches of %d in %d pages", len(touches), all, pages)
		}
	})
}

// An external set begins visits of whatever is asked for, and stores no entity.
func TestExternalSets(t *testing.T) {
	both(t, true, func(t *testing.T, s *Set, rdb *redis.Client) {
		if err := s.Visit(t.Context(), 3, Touch, In(0), "a", "b"); err != nil {
			t.Fatal(err)
		}
		take := taken(t, s, 1, 5, true, Touch, "geo")
		want(t, "visits", ids(take.Visits), []string{"! a", "! b"})
		c := &Commit{Partition: 3, Fence: "o", Ends: []End{{ID: "a", Number: 1, Settle: []Settlement{{Touch, Ends, "", ""}, {"geo", Puts, In(0), ""}}}}}
		s.Commit(t.Context(), c)
		want(t, "outcome", fmt.Sprint(c.Ended, c.Err), fmt.Sprint([]Ended{{Outcome: OK}}, nil))
		want(t, "visits", ids(taken(t, s, 2, 5, true, Touch, "geo").Visits), []string{"geo a"})
		want(t, "entities", rdb.Exists(t.Context(), s.key("ent", 3, "")).Val(), int64(0))
	})
}

// A repeated commit is gone, with the version that the first one gave; so is one of an earlier run.
func TestRepeatedCommits(t *testing.T) {
	both(t, false, func(t *testing.T, s *Set, _ *redis.Client) {
		saved(t, s, Change{"a", "1", Any})
		v := taken(t, s, 1, 1, false, Touch).Visits[0]
		first := &Commit{Partition: 3, Fence: "o", Ends: []End{{ID: "a", Number: 1, Mode: Put, Version: v.Entity.Version, Payload: "2", Settle: []Settlement{{Touch, Waits, At(time.UnixMilli(1)), ""}}}}}
		s.Commit(t.Context(), first)
		again := &Commit{Partition: 3, Fence: "o", Ends: first.Ends}
		s.Commit(t.Context(), again)
		want(t, "outcomes", fmt.Sprint(first.Ended, again.Ended), "[{ok 2 {0  }}] [{gone 2 {0  }}]")
		taken(t, s, 2, 1, false, Touch) // the same visit runs anew
		s.Commit(t.Context(), again)
		want(t, "a late delivery", fmt.Sprint(again.Ended), "[{gone 2 {0  }}]")
	})
}

// A conflict answers with what is stored, and the visit runs on: the next commit has that version.
func TestConflicts(t *testing.T) {
	both(t, false, func(t *testing.T, s *Set, _ *redis.Client) {
		saved(t, s, Change{"a", "1", 0})
		v := taken(t, s, 1, 1, false, Touch).Visits[0]
		saved(t, s, Change{"a", "of another", v.Entity.Version})
		c := &Commit{Partition: 3, Fence: "o", Ends: []End{{ID: "a", Number: 1, Mode: Put, Version: 1, Payload: "mine", Settle: []Settlement{{Touch, Ends, "", ""}}}}}
		s.Commit(t.Context(), c)
		want(t, "conflict", c.Ended, []Ended{{Conflict, 2, Entity{2, "0", "of another"}}})
		c.Ends[0].Version = 2
		s.Commit(t.Context(), c)
		want(t, "then", c.Ended, []Ended{{OK, 3, Entity{}}})
		want(t, "touched meanwhile", ids(taken(t, s, 2, 1, false, Touch).Visits), []string{"! a"})
	})
}

// A Take stops behind the entity that reaches MaxBytes, and says that more are due.
func TestTakesAreBounded(t *testing.T) {
	both(t, false, func(t *testing.T, s *Set, _ *redis.Client) {
		for _, id := range []string{"a", "b", "c"} {
			saved(t, s, Change{id, strings.Repeat("x", 600), Any})
		}
		first := taken(t, s, 1, 5, true, Touch)
		want(t, "visits", ids(first.Visits), []string{"! a", "! b"})
		want(t, "more are due", first.Next, time.Duration(0))
		want(t, "the rest", ids(taken(t, s, 2, 5, true, Touch).Visits), []string{"! c"})
	})
}

// An owner falls asleep only where nothing is due, and is woken once, by what comes before its time.
func TestSleepAndWake(t *testing.T) {
	both(t, false, func(t *testing.T, s *Set, rdb *redis.Client) {
		wakes := func() int64 { return rdb.XLen(t.Context(), s.place(3).Log).Val() }
		saved(t, s, Change{"a", "1", Any})
		want(t, "wakes of an owner that never slept", wakes(), int64(0))
		taken(t, s, 1, 1, true, Touch)
		saved(t, s, Change{"b", "1", Any})
		want(t, "wakes of one that is busy", wakes(), int64(0))
		taken(t, s, 2, 5, true, Touch)
		taken(t, s, 3, 5, true, Touch) // nothing is due
		saved(t, s, Change{"a", "2", Any}, Change{"b", "2", Any})
		saved(t, s, Change{"a", "3", Any})
		want(t, "wakes of one that sleeps", wakes(), int64(1))
	})
}

// On a full server nothing can be saved, and owners go on.
func TestOwnersGoOnWhereTheServerIsFull(t *testing.T) {
	s, rdb := open(t, redistest.Start(t).Addr(), keys.Standalone, false, "geo")
	rdb.HSet(t.Context(), s.place(3).Own, "tenure", "o")
	saved(t, s, Change{"a", "1", Any})
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	save := &Save{Partition: 3, Changes: []Change{{"b", "1", Any}}}
	if s.Save(t.Context(), save); save.Err == nil || !strings.Contains(save.Err.Error(), "OOM") {
		t.Errorf("save: %v", save.Err)
	}
	want(t, "visits", ids(taken(t, s, 1, 5, true, Touch, "geo").Visits), []string{"! a"})
	c := &Commit{Partition: 3, Fence: "o", Ends: []End{{ID: "a", Number: 1, Mode: Put, Version: 1, Payload: "2", Settle: []Settlement{{Touch, Ends, "", ""}, {"geo", Puts, In(0), ""}}}}}
	s.Commit(t.Context(), c)
	want(t, "outcome", fmt.Sprint(c.Ended, c.Err), "[{ok 2 {0  }}] <nil>")
}
