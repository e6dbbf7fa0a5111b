package redistest

import (
	"strings"
	"testing"
)

func TestFilledDiskIsFreed(t *testing.T) {
	s := StartLimited(t, 1<<30, "--appendonly", "yes", "--appendfsync", "everysec")
	c := s.Client(t)
	if err := c.Set(t.Context(), "k", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if !s.FillDisk() {
		t.Fatal("this system cannot")
	}
	full := Within(Patience, func() bool {
		err := c.Set(t.Context(), "k", "full", 0).Err()
		return err != nil && strings.HasPrefix(err.Error(), "MISCONF")
	})
	if !full {
		t.Errorf("no write failed with MISCONF\n%s", s.Log())
	}
	s.FreeDisk()
	if !Within(Patience, func() bool { return c.Set(t.Context(), "k", "after", 0).Err() == nil }) {
		t.Errorf("no write succeeded afterwards\n%s", s.Log())
	}
	s.Restart()
	if got := s.Client(t).Get(t.Context(), "k").Val(); got != "after" {
		t.Errorf("k = %q after a restart, want after", got)
	}
}
