package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/leader"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/store"
)

// A consumer that has seen the lease over has returned for good:
//
//  1. no refresh got through; the consumer asks for more and is told the end;
//  2. a late refresh is answered: the lease holds again;
//  3. the watcher finds nothing wrong, and nobody processes the partition.
func TestALeaseSeenOverByTheConsumerIsOver(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.add(1)
		synctest.Wait()
		old := r.tenure()
		lease := old.lease.Swap(monotime.Now() - 1)
		r.add(2)
		synctest.Wait()
		select {
		case <-old.life.finished:
		default:
			r.t.Fatal("the consumer goes on without a lease")
		}
		old.lease.Store(lease)
		if !old.isLost() {
			r.t.Error("the ownership goes on without a consumer")
		}
		time.Sleep(time.Minute)
		r.ready()
		r.add(3)
		synctest.Wait()
		r.wants("1 2 3")
		if lost := r.w.executors[0].count.LostPartitions.Load(); lost != 1 {
			r.t.Errorf("%d partitions lost, want 1", lost)
		}
	})
}

// So has the acker, which sends nothing and is not told again.
func TestALeaseSeenOverByTheAckerIsOver(t *testing.T) {
	expired := false
	inRig(t, func(r *rig, n int) {
		if n != 2 {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if expired {
			return
		}
		expired = true
		old := r.tenure()
		lease := old.lease.Swap(monotime.Now() - 1)
		// What Ack does behind us, with the acker before the refresh.
		old.buffer.Done([]string{old.buffer.Owed().Taken})
		_ = r.x().acks.one.send(context.Background(), []*partition{old})
		old.lease.Store(lease)
		if !old.isLost() {
			r.t.Error("the ownership goes on with an ack that is never sent")
		}
	}, func(r *rig) {
		r.add(1)
		synctest.Wait()
		r.add(2, 3)
		time.Sleep(time.Minute)
		r.ready()
		r.wants("1 2 2 3")
	})
}

// The read of an ownership whose group was destroyed may still be executed, on the
// group of the next ownership, which has the same name. Only when nobody reads under
// the executor ID any more need it not be awaited.
func TestTheReadOfALostTenureIsAwaited(t *testing.T) {
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprint("the executor ID ends: ", ends), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &member{executor: &executor{}}
				ctx, cancel := context.WithCancel(t.Context())
				m.ctx = ctx
				defer cancel()
				r := &reader{f: &fetcher{x: m}, byLog: map[string]*partition{}, wake: make(chan struct{}, 1), interrupts: make(chan struct{}, 1)}
				old := &partition{buffer: prefetch.New(prefetch.Config{Capacity: 8, MaxBytes: 1 << 20}), cancel: func(error) {}}
				old.life.init()
				old.keys.Log = "log"
				r.add(old)
				r.mu.Lock()
				r.begin([]*partition{old})
				r.mu.Unlock()
				old.lose()
				quiet := make(chan bool, 1)
				go func() { quiet <- r.remove(old) }()
				synctest.Wait()
				if len(quiet) > 0 {
					t.Fatal("removed while its read may still be executed")
				}
				if ends {
					cancel()
					if <-quiet {
						t.Error("said to be quiet while its read may still be executed")
					}
				}
				r.finish()
				if !ends && !<-quiet {
					t.Error("not said to be quiet though its read is over")
				}
			})
		})
	}
}

// Regain's word may come late:
//
//  1. the group is gone; regain is about to end the ownership;
//  2. the membership takes the partition away and gives it back: Release ends the
//     same ownership, Acquire begins another one;
//  3. regain goes on, and says that the partition was lost.
//
// Believed, it would have the coordinator acquire what this executor holds.
func TestRegainsLateWordIsNotAboutTheNextTenure(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.add(1)
		synctest.Wait()
		m, old := r.x(), r.tenure()
		time.Sleep(10 * time.Second)
		if err := errors.Join(m.Release(r.t.Context(), 0), m.Acquire(r.t.Context(), 0, 0)); err != nil {
			r.t.Fatal(err)
		}
		next := r.tenure()
		m.regain(old, store.GroupGone)
		time.Sleep(time.Minute)
		if r.tenure() != next || next == old {
			r.t.Error("the ownership was replaced")
		}
		if s := m.coord.State(); !slices.Equal(s.Owned, []int{0}) {
			r.t.Errorf("the coordinator owns %v", s.Owned)
		}
		r.ready()
		r.add(2)
		synctest.Wait()
		r.wants("1 2")
	})
}

func TestReadyDoesNotCountTriesThatWereCalledOff(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		off, cancel := context.WithCancel(r.t.Context())
		cancel()
		m := r.x()
		if err := m.Acquire(off, 0, 0); err == nil {
			r.t.Fatal("owned by a try that was called off")
		}
		r.ready()
		m.note(r.t.Context(), 0, errors.New("no stream"))
		if err := r.w.Ready(); err == nil || !strings.Contains(err.Error(), "partition 0 cannot be taken over: no stream") {
			r.t.Errorf("ready: %v", err)
		}
		// The partition moves away: the try is called off.
		if err := m.Acquire(off, 0, 0); err == nil {
			r.t.Fatal("owned by a try that was called off")
		}
		r.ready()
	})
}

// A timer counts on the monotonic clock: after a clock was set back it fires
// before the time that it was set for, and that time comes again.
func TestCronRunsOnceThoughTheClockIsSetBack(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		var back atomic.Int64
		now := func() time.Time { return time.Now().Round(0).Add(-time.Duration(back.Load())) }
		began := now()
		var at []time.Duration
		w := taskWorker(t, srv, "w", quiet, &leader.Task{
			Name: "hourly",
			Next: func(after time.Time) time.Time { return after.Truncate(time.Hour).Add(time.Hour) },
			Run:  func(context.Context) error { at = append(at, now().Sub(began)); return nil },
		})
		w.tasks.Now = now
		time.AfterFunc(30*time.Minute, func() { back.Store(int64(20 * time.Minute)) })
		runFor(t, 2*time.Hour+30*time.Minute, w)
		if fmt.Sprint(at) != "[1h0m0s 2h0m0s]" {
			t.Errorf("ran at %v by the clock, want once an hour", at)
		}
	})
}

// refusal is an error reply.
type refusal string

func (e refusal) Error() string { return string(e) }
func (e refusal) RedisError()   {}

// noKill is a server that does not permit CLIENT KILL.
type noKill struct{}

func (noKill) DialHook(next redis.DialHook) redis.DialHook { return next }

func (noKill) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (noKill) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "client" && args[1] == "kill" {
			cmd.SetErr(refusal("NOPERM no permission"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// Where a broken read cannot be ended for certain, its partitions get nothing
// more under the executor ID, however long the release takes:
//
//  1. the read is sent and its connection breaks;
//  2. a new connection reads on and gets entry 1;
//  3. the server executes the old read: entry 2 is pending, with nobody;
//  4. the new connection gets entry 3, which is processed before entry 2.
func TestNothingIsReadBesideAReadThatCannotBeEnded(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.w.client.Redis().AddHook(noKill{})
		r.add(1)
		synctest.Wait()
		old := r.tenure()
		// The leave waits for the admin lock.
		if err := r.rdb.Set(r.t.Context(), r.w.client.Keys().AdminLock("s", "p"), "somebody", 3*time.Second).Err(); err != nil {
			r.t.Fatal(err)
		}
		for id := range 64 {
			r.rdb.ClientKillByFilter(r.t.Context(), "ID", fmt.Sprint(id))
		}
		time.Sleep(100 * time.Millisecond)
		r.add(2)
		time.Sleep(time.Second)
		r.mu.Lock()
		got := strings.Join(r.got, " ")
		r.mu.Unlock()
		if r.tenure() != old {
			r.t.Fatal("the ownership has ended already")
		}
		if got != "1" {
			r.t.Errorf("processed %q meanwhile, want nothing behind 1", got)
		}
		time.Sleep(time.Minute)
		r.ready()
		r.wants("1 2")
	})
}

// The acker may be told of an ownership once more than there is to ack, and look at it
// after its release, when nobody refreshes its lease any more.
func TestALeaseThatEndsAfterTheReleaseIsNotLost(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.add(1)
		synctest.Wait()
		m, old := r.x(), r.tenure()
		if err := errors.Join(m.Release(r.t.Context(), 0), m.Acquire(r.t.Context(), 0, 0)); err != nil {
			r.t.Fatal(err)
		}
		old.lease.Store(monotime.Now() - 1)
		m.acks.mark(old)
		time.Sleep(time.Minute)
		if lost := r.w.executors[0].count.LostPartitions.Load(); lost != 0 || r.x() != m {
			r.t.Errorf("%d partitions lost, rejoined: %v", lost, r.x() != m)
		}
		r.add(2)
		synctest.Wait()
		r.wants("1 2")
	})
}

// The last try of a start is cut off when the time is up: the error tells what the
// one before it found out.
func TestStartTellsMoreThanThatItsTimeIsUp(t *testing.T) {
	reason := fmt.Errorf("the reason: %w", io.EOF)
	for _, firstFails := range []bool{true, false} {
		inBubble(t, func(t *testing.T, srv *embedded.Server) {
			w := taskWorker(t, srv, "w", quiet)
			tries := 0
			w.cfg.Ensure = func(ctx context.Context) error {
				if tries++; firstFails && tries == 1 {
					return reason
				}
				<-ctx.Done()
				return ctx.Err()
			}
			want := context.DeadlineExceeded
			if firstFails {
				want = reason
			}
			if err := w.Run(t.Context()); err != want {
				t.Errorf("got %v after %d tries, want %v", err, tries, want)
			}
		})
	}
}
