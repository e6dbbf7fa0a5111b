package stage

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/sets"
	istage "github.com/runnel-go/runnel/internal/stage"
)

func init() {
	sets.Play = func(any any) (*sets.Player, bool) {
		s, ok := any.(interface{ untyped() *set })
		if !ok {
			return nil, false
		}
		return s.untyped().player(), true
	}
}

func (s *set) untyped() *set { return s }

// player calls the functions of the set for tests.
func (s *set) player() *sets.Player {
	return &sets.Player{
		App:    s.app,
		Stages: s.names(),
		Retry: func(stage string) *retryqueue.Retry {
			if s.begin() != nil {
				return nil
			}
			return s.by[stage].retry
		},
		Stored: func(value any) (any, error) {
			err := s.begin()
			if err != nil {
				return nil, err
			}
			payload, id, _, err := s.encodeAny(value)
			if err != nil || s.external != nil {
				return value, err
			}
			return s.decode(id, payload)
		},
		Wants: func(stage string, value any) (bool, error) { return s.by[stage].wants(value) },
		Call:  s.play,
		Pass: func(passes string, now time.Time) (string, bool) {
			more := pass(passes, now)
			return more, loops(more, now)
		},
	}
}

// play calls the function of a stage for a test.
func (s *set) play(ctx context.Context, v sets.Call) sets.Called {
	id, err := s.idOf(v.Value)
	if err != nil {
		return sets.Called{Err: err}
	}
	ctx = context.WithValue(ctx, visitKey{}, &visitScope{now: func() time.Time { return v.Due }, played: true, visit: Visit{
		Set: s.name, Stage: v.Stage, ID: id, Epoch: 1, Version: v.Version, Attempt: v.Attempt, Due: v.Due,
	}})
	r, made, err := s.by[v.Stage].call(ctx, v.Value)
	out := sets.Called{Result: untouched.String(), Value: made, Err: err}
	switch r.mode {
	case istage.Put:
		out.Result = updated.String()
	case istage.Remove:
		out.Result = deleted.String()
	}
	if err == nil && out.Result == updated.String() {
		if is, err := s.idOf(made); err != nil || is != id {
			out.Err = errID(id, is)
		}
	}
	if r.again.wanted {
		out.Again = r.again.time(v.Due)
	}
	return out
}
