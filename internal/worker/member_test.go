package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/store"
)

// A call of releaser.regain may be late:
//
//  1. the group is gone; regain is about to end the ownership;
//  2. the membership takes the partition away and gives it back: Release ends the
//     same ownership, Acquire begins another one;
//  3. regain goes on and reports the partition as lost.
//
// The coordinator must not acquire a partition that this executor owns.
func TestALateRegainDoesNotEndTheNextOwnership(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.add(1)
		synctest.Wait()
		m, old := r.x(), r.partition()
		time.Sleep(10 * time.Second)
		if err := errors.Join(m.Release(r.t.Context(), 0), m.Acquire(r.t.Context(), 0, 0)); err != nil {
			r.t.Fatal(err)
		}
		next := r.partition()
		m.releases.regain(old, store.GroupGone)
		time.Sleep(time.Minute)
		if r.partition() != next || next == old {
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

func TestReadyIgnoresCancelledTries(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		off, cancel := context.WithCancel(r.t.Context())
		cancel()
		m := r.x()
		if err := m.Acquire(off, 0, 0); err == nil {
			r.t.Fatal("owned by a cancelled try")
		}
		r.ready()
		m.claims.note(r.t.Context(), 0, errors.New("no stream"))
		if err := r.w.Ready(); err == nil || !strings.Contains(err.Error(), "partition 0 cannot be taken over: no stream") {
			r.t.Errorf("ready: %v", err)
		}
		if err := m.Acquire(off, 0, 0); err == nil {
			r.t.Fatal("owned by a cancelled try")
		}
		r.ready()
	})
}

// When time is up during the last try of a start, Run returns the error of the try before it.
func TestStartReturnsTheErrorBeforeItsTimeIsUp(t *testing.T) {
	reason := fmt.Errorf("the reason: %w", io.EOF)
	for _, firstFails := range []bool{true, false} {
		inBubble(t, func(t *testing.T, srv *embedded.Server) {
			w := taskWorker(t, srv, "w", quiet)
			tries := 0
			w.cfg.Ensure = func(ctx context.Context, step Step) error {
				return step(ctx, func(ctx context.Context) error {
					if tries++; firstFails && tries == 1 {
						return reason
					}
					<-ctx.Done()
					return ctx.Err()
				})
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

// A start may take long where much is to be asked, but no longer than its patience where it comes no further.
func TestAStartMayTakeLongButNotStandStill(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		what        string
		last        error // of the step behind ten slow ones
		want        error
		least, most time.Duration
	}{
		{"many slow steps", refused, refused, 20 * time.Second, 21 * time.Second},
		{"then one that breaks off", io.EOF, io.EOF, 25 * time.Second, 31 * time.Second},
	} {
		inBubble(t, func(t *testing.T, srv *embedded.Server) {
			w := taskWorker(t, srv, "w", quiet)
			slow := 2 * time.Second
			w.cfg.Ensure = func(ctx context.Context, step Step) error {
				for range 10 {
					err := step(ctx, func(ctx context.Context) error { monotime.Sleep(ctx, slow); return ctx.Err() })
					if err != nil {
						return err
					}
				}
				slow = 0 // in the tries that follow
				return step(ctx, func(context.Context) error { return tt.last })
			}
			began := time.Now()
			err := w.Run(t.Context())
			if took := time.Since(began); !errors.Is(err, tt.want) || took < tt.least || took > tt.most {
				t.Errorf("%s: %v after %v", tt.what, err, took)
			}
		})
	}
}
