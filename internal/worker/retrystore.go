package worker

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/store"
)

// A redisStore is the retryqueue.Store of an ownership: the parked events in Redis, under its fence.
type redisStore struct {
	i *member
	t *partition
	// offset is the server's clock less monotime, in nanoseconds, from a reply that may have
	// been slow: never too large.
	offset int64
	moving atomic.Bool // a script may have moved events out of the partition, and its reply has not come
}

// lastWords is how long what became of an event may still be stored after the function's grace.
const lastWords = time.Second

func (s *redisStore) Now() int64 { return (monotime.Now() + s.offset) / int64(time.Millisecond) }

func (s *redisStore) Load() (states []store.RetryState, err error) {
	err = s.persist(func(ctx context.Context) error {
		var now time.Time
		if states, now, err = s.i.w.client.Retries(ctx, s.t.keys); err == nil {
			s.offset = now.UnixNano() - monotime.Now()
		}
		return err
	})
	return states, err
}

func (s *redisStore) Payload(id string) (e redisconn.Entry, there bool, err error) {
	err = s.persist(func(ctx context.Context) error {
		e, there, err = s.i.w.client.Parked(ctx, s.t.keys, id)
		return err
	})
	return e, there, err
}

func (s *redisStore) Begin(state store.RetryState) (e redisconn.Entry, there bool, err error) {
	err = s.persist(func(ctx context.Context) error {
		e, there, err = s.i.w.client.BeginRetry(ctx, s.t.keys, s.t.claim, state)
		return err
	})
	return e, there, err
}

func (s *redisStore) Park(ps []store.Parking) error {
	ids := make([]string, len(ps))
	for i, p := range ps {
		ids[i] = p.Entry.ID
	}
	if !s.t.settleFirst() {
		return io.EOF
	}
	return s.move(ids, func(ctx context.Context) error {
		return s.i.w.client.Park(ctx, s.t.keys, s.t.claim, s.i.p.MaxLen, ps)
	})
}

func (s *redisStore) Write(state store.RetryState) (there bool, err error) {
	err = s.persist(func(ctx context.Context) error {
		there, err = s.i.w.client.WriteRetry(ctx, s.t.keys, s.t.claim, state)
		return err
	})
	return there, err
}

func (s *redisStore) Done(id string, waits *store.RetryState) error {
	if s.t.staging != nil {
		return s.t.commitParked(id, waits)
	}
	return s.persist(func(ctx context.Context) error {
		return s.i.w.client.DoneRetry(ctx, s.t.keys, s.t.claim, id)
	})
}

func (s *redisStore) DeadLetter(d store.DeadLetter) error {
	if !s.t.settleFirst() {
		return io.EOF
	}
	return s.move([]string{d.Entry.ID}, func(ctx context.Context) error {
		return s.i.w.client.DeadLetter(ctx, s.t.keys, s.t.claim, d)
	})
}

// move runs a script that moves events out of the partition and acks them, and counts them. By position a commit has yet to pass
// them.
func (s *redisStore) move(ids []string, script func(ctx context.Context) error) error {
	s.moving.Store(true)
	defer s.moving.Store(false)
	err := s.persist(script)
	if err == nil {
		s.i.count.Acked.Add(int64(s.t.buffer.Moved(ids)))
		s.i.acks.mark(s.t)
		s.i.w.trimmer.mark(s.t)
	}
	return err
}

// persist repeats a call, which must be safe under one ownership, until its outcome is known. It
// returns io.EOF if the ownership, or the function's grace, is over.
func (s *redisStore) persist(call func(ctx context.Context) error) error {
	return s.persistAs("parked events", call)
}

// persistAs is persist of something else, which the log names.
func (s *redisStore) persistAs(op string, call func(ctx context.Context) error) error {
	ctx := s.t.ctx
	if ctx.Err() != nil && !s.t.life.isLost() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer cancel()
	}
	retry := outage.New(s.t.log, op, &s.t.count.Errors)
	for s.t.leaseValid() && ctx.Err() == nil {
		err := call(ctx)
		switch {
		case err == nil || errors.Is(err, store.ErrFull):
			retry.Recovered()
			return err
		case errors.Is(err, store.ErrFenced):
			// After an error nothing is known, and the call is repeated.
			_ = s.i.releases.probe(ctx, []*partition{s.t}, err)
		}
		retry.Wait(ctx, err)
	}
	return io.EOF
}

// unlessOver returns what a read brings, or an error as soon as ctx ends: a server that does not answer must not look like a function
// that is stuck. What the read brings then is lost.
func unlessOver[T any](ctx context.Context, read func() (T, error)) (found T, err error) {
	var brought T
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		brought, failed = read()
	}()
	select {
	case <-done:
		return brought, failed
	case <-ctx.Done():
		return found, context.Cause(ctx)
	}
}

// restore sets the state of parked events, and of events that have ended owners, from Redis.
func (s *partitionSource) restore(m *member, pos store.Takeover) {
	p := s.p
	s.parked = &redisStore{i: m, t: p, offset: pos.Now*int64(time.Millisecond) - monotime.Now()}
	s.retries = retryqueue.New(retryqueue.Config{
		Retry: m.p.Retry, Store: s.parked, Key: m.p.Key, Limit: m.p.MaxLen, Waits: s.ends.before,
		Partition: p.keys.Number, Epoch: p.epoch, Suspect: pos.Suspect, Deaths: pos.Deaths, Skip: pos.Skip, SetAside: pos.SetAside, Log: p.log, Counts: &p.count.Counts,
	})
	if pos.Parked > 0 {
		s.stale.Store(atFirst)
	}
	s.deaths = deaths{attempts: s.retries.MaxAttempts(), event: pos.Suspect, n: pos.Deaths}
	s.careful = (m.p.Retry != nil || pos.Deaths > 1 || pos.Again) && pos.Crashed && entryid.Compare(pos.Delivered, pos.Committed) > 0
	s.notified, s.ends.look = newSignal(), monotime.Now()
}
