package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A read that a server does not answer ends with the ownership, and not when the connection gives up.
func TestAReadEndsWithTheOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(ErrLost) })
		began := time.Now()
		slow := func() (int, error) { time.Sleep(5 * time.Second); return 7, nil }
		if n, err := unlessOver(ctx, slow); n != 0 || !errors.Is(err, ErrLost) || time.Since(began) != time.Second {
			t.Errorf("%d, %v after %v", n, err, time.Since(began))
		}
		if n, err := unlessOver(t.Context(), slow); n != 7 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		time.Sleep(time.Minute)
	})
}
