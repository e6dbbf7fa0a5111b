package store

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// A server that dies while it writes a commit into its append-only file comes back with all of the commit, or none of
// it: the file may end at any byte. A crash loses the end of what was written, and nothing before it.
func TestAServerThatDiesKeepsAllOfACommitOrNothing(t *testing.T) {
	tier.Slow(t)
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	e := newEnv(t, s.Addr(), true)
	w := e.atWork(0)
	e.must(e.raw.Del(e.ctx(), w.p.Lock).Err()) // it would end meanwhile
	path := filepath.Join(s.Dir(), "appendonlydir", "appendonly.aof.1.incr.aof")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err) // before Redis 7
	}
	before, short := e.everything(), len(try(os.ReadFile(path)).must(t))
	e.must(e.store(w.next(2, "1-3", w.all())))
	after := e.everything()
	s.Kill()
	whole := try(os.ReadFile(path)).must(t)
	written := whole[short:]
	if !bytes.Contains(written, []byte("MULTI")) || !bytes.Contains(written, []byte("EXEC")) {
		t.Fatalf("the commit is no transaction: %q", written)
	}
	back := func(end int) map[string]string {
		t.Helper()
		s.Kill()
		e.must(os.WriteFile(path, whole[:end], 0o600))
		s.Restart()
		return newEnv(t, s.Addr(), true).everything()
	}
	for end := short; end < len(whole); end += 1 + len(written)/60 {
		if got := back(end); !maps.Equal(got, before) {
			t.Fatalf("after %d bytes of the %d of the commit: %s", end-short, len(written), differences(got, before))
		}
	}
	for _, end := range []int{len(whole) - 2, len(whole) - 1} { // EXEC has no line end yet
		if got := back(end); !maps.Equal(got, before) {
			t.Fatalf("before the last byte: %s", differences(got, before))
		}
	}
	if got := back(len(whole)); !maps.Equal(got, after) {
		t.Fatalf("with the whole commit: %s", differences(got, after))
	}
	e = newEnv(t, s.Addr(), true)
	w.env = e
	e.unchanged("again, since the reply was lost", func() error { return e.store(w.next(2, "1-3", w.all())) }, is(nil))
	w.stored("in the end")
}

func differences(got, want map[string]string) (all string) {
	for key := range want {
		if got[key] != want[key] {
			all += fmt.Sprintf("\n%s is %q, want %q", key, got[key], want[key])
		}
	}
	for key := range got {
		if _, there := want[key]; !there {
			all += fmt.Sprintf("\n%s is there, too", key)
		}
	}
	return all
}
