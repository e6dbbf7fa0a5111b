package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/prefetch"
)

// The read of an ownership whose group was destroyed may still be executed, on the group of the
// next ownership, which has the same name. So it is awaited, unless the executor ID ends.
func TestTheReadOfALostOwnershipIsAwaited(t *testing.T) {
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
				go func() { quiet <- r.outlast(old, r.remove(old)) }()
				synctest.Wait()
				if len(quiet) > 0 {
					t.Fatal("removed while its read may still be executed")
				}
				if ends {
					cancel()
					if <-quiet {
						t.Error("remove reported true while the read may still be executed")
					}
				}
				r.finish()
				if !ends && !<-quiet {
					t.Error("remove reported false though the read is over")
				}
			})
		})
	}
}

type refusal string

func (e refusal) Error() string { return string(e) }
func (e refusal) RedisError()   {}

// noKill is a server without permission for CLIENT KILL.
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

// If a broken read cannot be ended for certain, its partitions get no more entries under the
// executor ID, however long the release takes:
//
//  1. the read is sent and its connection breaks;
//  2. a new connection reads on and gets entry 1;
//  3. the server executes the old read: entry 2 is pending, and no reader holds it;
//  4. the new connection gets entry 3, which is processed before entry 2.
func TestNothingIsReadBesideAReadThatCannotBeEnded(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.w.client.Redis().AddHook(noKill{})
		r.add(1)
		synctest.Wait()
		old := r.partition()
		// The leave waits for the admin lock.
		if err := r.rdb.Set(r.t.Context(), r.w.client.Keys().AdminLock("s", "p"), "another", 3*time.Second).Err(); err != nil {
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
		if r.partition() != old {
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
