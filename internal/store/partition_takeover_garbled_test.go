package store

import (
	"errors"
	"strings"
	"testing"
)

// The error names a garbled ownership hash, and nothing is changed.
func TestTakeoverOfAGarbledOwnership(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, tt := range []struct{ field, value string }{
			{"epoch", "garbage"}, {"epoch", "9007199254740992"},
			{"epoch", "9007199254740991"}, {"epoch", "9007199254740990"}, {"epoch", "-3"}, {"floor", "nonsense"}, {"read", "many"}, {"lost", "abc"},
		} {
			p := e.Partition("orders", "printer", i)
			e.add(p.Log, "1-1")
			e.own(p, tenure(alice, 1))
			e.must(e.raw.HSet(e.ctx(), p.Own, tt.field, tt.value).Err())
			groups := e.groups(p.Log)
			e.must(e.raw.Del(e.ctx(), p.Lock).Err())
			e.lock(p, tenure(bob, 1))
			want := []string{p.Own, "field " + tt.field, tt.value, "DEL that key"}
			says := func(what string, err error) {
				t.Helper()
				for _, text := range want {
					if !errors.Is(err, ErrGarbled) || !strings.Contains(err.Error(), text) {
						t.Errorf("%s %s %s: %v does not name %q", what, tt.field, tt.value, err, text)
					}
				}
			}
			_, err := e.Takeover(e.ctx(), p, tenure(bob, 1), "", 0)
			says("takeover", err)
			equal(t, "groups", e.groups(p.Log), groups)
			if tt.field != "read" {
				views := try(e.Views(e.ctx(), []Partition{p})).must(t)
				says("view", views[0].Err)
			}
			e.must(e.raw.Del(e.ctx(), p.Own).Err())
			try(e.Takeover(e.ctx(), p, tenure(bob, 1), "", 0)).must(t)
		}
	})
}
