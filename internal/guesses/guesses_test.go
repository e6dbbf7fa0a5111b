package guesses

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// An address that guesses is refused after a few tokens, even with the right one, until a minute is over.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		for i := range Wrong {
			if g.Blocked("192.0.2.1") || !g.Try("192.0.2.1", false) {
				t.Fatalf("guess %d is refused", i)
			}
		}
		if !g.Blocked("192.0.2.1") || g.Try("192.0.2.1", true) || !g.Try("192.0.2.2", true) {
			t.Error("the guesser may try, or another may not")
		}
		time.Sleep(Window)
		if g.Blocked("192.0.2.1") || !g.Try("192.0.2.1", true) {
			t.Error("refused a minute later")
		}
	})
}

// So many addresses are remembered and no more; who comes then has to wait.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		for i := range 2 * remembered {
			g.Try(fmt.Sprint("10.0.", i/256, ".", i%256), false)
		}
		if len(g.guesses) != remembered || !g.Blocked("192.0.2.1") || g.Blocked("10.0.0.1") {
			t.Errorf("%d addresses are remembered", len(g.guesses))
		}
		time.Sleep(Window)
		if g.Blocked("192.0.2.1") || len(g.guesses) != 0 {
			t.Errorf("%d addresses are remembered a minute later", len(g.guesses))
		}
	})
}

func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:4000": "192.0.2.1", "[2001:db8::1]:4000": "2001:db8::/64", "[2001:db8::2]:1": "2001:db8::/64",
		"[fe80::1%eth0]:1": "fe80::/64", "[::ffff:192.0.2.1]:1": "::ffff:192.0.2.1", "@": "@",
	} {
		if got := Address(remote); got != want {
			t.Errorf("%s: got %s, want %s", remote, got, want)
		}
	}
}
