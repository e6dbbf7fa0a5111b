package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/rules"
)

// ownership is what the function was called for at last.
func (r *rig) ownership() *Ownership {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own
}

// rule sets a rule, or removes it, and waits until the worker has seen it.
func (r *rig) rule(scope rules.Scope, set bool) {
	r.t.Helper()
	var err error
	if set {
		_, err = r.w.client.SetRule(r.t.Context(), rules.Rule{Kind: rules.Pause, Scope: scope}, 0)
	} else {
		_, err = r.w.client.RemoveRule(r.t.Context(), rules.Pause, scope)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // of fake time: more than a third of the lease
	synctest.Wait()
}

// begins reports whether a call may begin, and ends it.
func (r *rig) begins(gate string) bool {
	end, ok := r.ownership().Begin(gate)
	if ok {
		end()
	}
	return ok
}

func (r *rig) waitsFor(scope rules.Scope) int {
	r.t.Helper()
	set, now, err := r.w.client.Rules(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	not, err := r.w.client.NotPausedYet(r.t.Context(), "s", "p", []int{0}, now, func(g rules.Generations) bool { return set.InEffect(g, scope, now) }, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(not)
}

func TestOwnershipKnowsItsFenceAndClock(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		t := r.t
		o := r.ownership()
		partition, epoch := o.At()
		want(t, "partition", partition, 0)
		want(t, "epoch", epoch, r.partition().epoch)
		want(t, "fence", o.Fence(), r.rdb.HGet(t.Context(), "__own:app.s.p.0", "tenure").Val())
		want(t, "live", o.Live(), true)
		want(t, "numbers", o.Number()+10*o.Number(), 21)
		server, known := r.rdb.Time(t.Context()).Val(), o.Now()
		if behind := server.Sub(known); behind < 0 || behind > time.Second {
			t.Errorf("the server's time is %v, known is %v", server, known)
		}
		if left := time.Until(o.LeaseEnd()); left <= 0 || left > o.Expiry() {
			t.Errorf("the lease ends in %v", left)
		}
		if OwnershipOf(t.Context()) != nil {
			t.Error("an ownership outside of a processor")
		}
		r.x().releases.lose(r.partition(), errors.New("for the test"))
		want(t, "live when lost", o.Live(), false)
		want(t, "begins when lost", r.begins(""), false)
		<-o.Ending()
	})
}

// A rule about a part holds back its calls alone. It is in full effect when none of them runs.
func TestGatesCloseByRulesAndCountWhatRuns(t *testing.T) {
	part, app := rules.Processor("s", "part"), rules.App()
	inRig(t, nil, func(r *rig) {
		t := r.t
		change := r.ownership().Changed()
		end, ok := r.ownership().Begin("part")
		want(t, "begins", ok, true)
		want(t, "runs", r.w.Stats().Processors[0].Running, 1)

		r.rule(part, true)
		want(t, "changed", isClosed(change), true)
		want(t, "begins while paused", r.begins("part"), false)
		want(t, "another gate begins", r.begins(""), true)
		want(t, "one call still runs", r.waitsFor(part), 1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want(t, "reported as running for long", len(r.x().heartbeat.info().Running), 1)
		end()
		end()
		synctest.Wait()
		want(t, "none runs", r.waitsFor(part), 0)
		want(t, "running", r.w.Stats().Processors[0].Running, 0)

		change = r.ownership().Changed()
		r.rule(part, false)
		want(t, "changed again", isClosed(change), true)
		want(t, "begins again", r.begins("part"), true)
		r.rule(app, true)
		want(t, "begins while the app is paused", r.begins("part") || r.begins(""), false)
		want(t, "nothing runs in the app", r.waitsFor(app), 0)
		r.rule(app, false)
		want(t, "begins after all", r.begins("part") && r.begins(""), true)
	})
}

// What is fenced under a lock of ours is taken over again; under another's lock it is lost.
func TestFencedOwnershipIsLookedAt(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		t := r.t
		o := r.ownership()
		if err := r.rdb.HSet(t.Context(), "__own:app.s.p.0", "tenure", "forgotten").Err(); err != nil {
			t.Fatal(err)
		}
		o.Lost(errors.New("FENCED"))
		time.Sleep(time.Second)
		synctest.Wait()
		next := r.ownership()
		want(t, "live", o.Live(), false)
		want(t, "taken over again", next != o && next.Live(), true)
		want(t, "fence", next.Fence(), r.rdb.HGet(t.Context(), "__own:app.s.p.0", "tenure").Val())
		if err := r.rdb.Set(t.Context(), "__lock:app.s.p.0", "another", 15*time.Second).Err(); err != nil {
			t.Fatal(err)
		}
		next.Lost(errors.New("FENCED"))
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, "live under another's lock", next.Live(), false)
		time.Sleep(time.Minute)
		r.ready()
	})
}

func TestIsolatedCallsRunOneAtATime(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		t := r.t
		o := r.ownership()
		end, ok := o.Isolate(t.Context())
		want(t, "alone", ok, true)
		second := make(chan func())
		go func() {
			end, _ := o.Isolate(t.Context())
			second <- end
		}()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, ok = o.Isolate(short)
		want(t, "beside it, for a second", ok, false)
		select {
		case <-second:
			t.Fatal("two alone")
		default:
		}
		end()
		end = <-second
		end()
		end()
		_, ok = o.Isolate(t.Context())
		want(t, "after both", ok, true)
	})
}
