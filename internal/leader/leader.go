// Package leader elects one worker of an app to run its leader-only tasks.
//
// Leadership is a term. It begins when the lock `__leader:<app>` is obtained, is
// renewed every Poll, and the leader trusts it only inside a window that its own
// monotonic clock measures:
//
//	renewal sent ──────────── lock expires (3 × Poll after it was executed)
//	     └──── trust ────┘ a fifth earlier, and counted from before the request
//
// So at most one worker is inside its window at any moment, whatever the network delays,
// as long as the clocks of workers and server run at the same speed within that margin. A
// server's clock that is set forward ends the lock at once, and a window only at the next
// renewal: two workers may lead until then (docs/faults.md). Leadership is a lease as in
// Gray and Cheriton (1989), not a fence: a task that writes to other systems and may be
// stopped for longer than the window should check its context before each write.
//
//	           obtained                    window over, or lock lost
//	candidate ──────────► leader (term n) ──────────────────────────► candidate
//	    ▲                     │ ctx ends: tasks stop, lock released
//	    └── every Poll ───────┘
//
// Workers of older versions lead by `__lead:<app>`, which Python's runnel uses for its
// own leader. A candidate gives way to an older worker that holds that lock, and ignores
// Python's value in it. Two may lead for up to a Poll only if an older worker obtains that
// lock when no other has held it: the older one does not see the newer one, which ends its
// term at its next renewal.
package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
)

// errDeposed is the cause of a term that ended without a shutdown.
var errDeposed = errors.New("leadership lost")

// A Candidate campaigns for one worker.
type Candidate struct {
	Redis redis.UniversalClient
	Key   string        // of the lock
	Old   string        // key of the lock of older versions
	Name  string        // of the worker; made unique here
	Poll  time.Duration // between campaigns and between renewals
	Log   *slog.Logger

	token   string    // the value of the lock, in the terms of the current Run
	oldSeen time.Time // when a worker of an older version has last led
}

// Run campaigns until ctx ends and calls term for each term that is won, with a context
// that ends with the trust window or ctx. The next campaign begins when term has
// returned. Run blocks; errors of Redis are logged once and retried.
func (c *Candidate) Run(ctx context.Context, term func(ctx context.Context)) {
	c.token = fmt.Sprintf("%s/%08x-%d", c.Name, rand.Uint32(), c.expiry().Milliseconds())
	troubled := false
	for ctx.Err() == nil {
		sent := time.Now()
		lock, err := c.obtain(ctx, c.token)
		if lock != nil {
			c.lead(ctx, lock, sent, term)
		}
		if trouble := err != nil && ctx.Err() == nil; trouble != troubled {
			troubled = trouble
			if trouble {
				c.Log.Warn("redis error, retrying", "op", "leadership", "err", err, "help", help.RedisErrors)
			}
		}
		monotime.Sleep(ctx, c.Poll/2+rand.N(c.Poll/2+1))
	}
}

func (c *Candidate) expiry() time.Duration { return 3 * c.Poll }

// ofGo matches what a worker of Go stores in its lock.
var ofGo = regexp.MustCompile(`/[0-9a-f]{8}-\d+$`)

// old reports whether a worker of an older version leads, or led within the last two
// Polls: for that long another worker of its version may follow it.
func (c *Candidate) old(ctx context.Context) (bool, error) {
	held, err := c.Redis.Get(ctx, c.Old).Result()
	if ofGo.MatchString(held) {
		if time.Since(c.oldSeen) >= 2*c.Poll {
			c.Log.Info("leadership left to an older version", "cause", c.Old+" holds "+held)
		}
		c.oldSeen = time.Now()
	}
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return time.Since(c.oldSeen) < 2*c.Poll, err
}

// obtain is one campaign. It returns nil if another worker leads. A lock with too long a
// life, because of a step of the server's clock or an accident, is shortened, but not
// below the expiry in its value: another worker may have another Poll.
func (c *Candidate) obtain(ctx context.Context, token string) (*redislock.Lock, error) {
	if old, err := c.old(ctx); old || err != nil {
		return nil, err
	}
	lock, err := redislock.Obtain(ctx, c.Redis, c.Key, c.expiry(), &redislock.Options{Token: token})
	if !errors.Is(err, redislock.ErrNotObtained) {
		return lock, err
	}
	held, getErr := c.Redis.Get(ctx, c.Key).Result()
	if errors.Is(getErr, redis.Nil) {
		return nil, nil // it has just expired
	}
	expiry := max(c.expiry().Milliseconds(), expiryOf(held))
	return nil, errors.Join(getErr, c.Redis.Do(ctx, "PEXPIRE", c.Key, expiry, "LT").Err())
}

func expiryOf(value string) int64 {
	n, _ := strconv.ParseInt(value[strings.LastIndexByte(value, '-')+1:], 10, 64)
	return min(n, time.Hour.Milliseconds())
}

func (c *Candidate) lead(ctx context.Context, lock *redislock.Lock, sent time.Time, term func(context.Context)) {
	c.Log.Info("leadership gained")
	tctx, end := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	stop := make(chan struct{})
	renewing.Go(func() {
		c.renew(tctx, lock, sent, stop)
		end(errDeposed)
	})
	term(tctx)
	close(stop)
	renewing.Wait()
	if err := context.Cause(tctx); errors.Is(err, errDeposed) && ctx.Err() == nil {
		c.Log.Warn("leadership lost")
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := lock.Release(release); err != nil && !errors.Is(err, redislock.ErrLockNotHeld) {
		c.Log.Warn("leadership not released", "err", err)
	}
}

// renew renews the lock until stop. It returns when the term may no longer be trusted.
func (c *Candidate) renew(ctx context.Context, lock *redislock.Lock, sent time.Time, stop <-chan struct{}) {
	trust := c.expiry() - c.expiry()/5
	wait := c.Poll
	for {
		window := sent.Add(trust)
		timer := time.NewTimer(min(wait, time.Until(window)))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(window) {
			return
		}
		// A renewal must not outlast the window that it extends.
		rctx, cancel := context.WithDeadline(ctx, window)
		old, err := c.old(rctx)
		if err == nil && !old {
			err = lock.Refresh(rctx, c.expiry(), nil)
		}
		cancel()
		switch {
		case old || errors.Is(err, redislock.ErrNotObtained):
			return
		case err == nil:
			sent, wait = now, c.Poll
		default:
			wait = min(c.Poll/4, time.Second)
		}
	}
}
