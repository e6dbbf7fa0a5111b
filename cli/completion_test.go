package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// completed returns the completions of a command line.
func (s *shop) completed(words ...string) []string {
	s.t.Helper()
	r := s.untypedRaw(append([]string{cobra.ShellCompNoDescRequestCmd}, words...)...)
	found := strings.Fields(r.out)
	if r.code != 0 || len(found) == 0 || !strings.HasPrefix(found[len(found)-1], ":") {
		s.t.Errorf("%q: %+v", words, r)
		return nil
	}
	return found[:len(found)-1] // the last reports whether files may follow
}

// untypedRaw is untyped with unchanged words.
func (s *shop) untypedRaw(args ...string) result { return run(s.t.Context(), nil, "", args...) }

func TestComplete(t *testing.T) {
	s := owned(t, 4)
	t.Setenv(envApp, "shop")
	for line, want := range map[string]string{
		"st":                               "status stream",
		"stream ":                          "info ls move-layout rm tail verify",
		"stream i":                         "info",
		"processor re":                     "reset",
		"tail o":                           "orders",
		"tail --key ada ":                  "orders",
		"tail --key ":                      "",
		"status ":                          "orders orders/printer",
		"top ":                             "orders orders/printer",
		"top --ev":                         "--every",
		"bench ":                           "",
		"processor reset o":                "orders/printer",
		"--app shop processor reset ":      "orders/printer",
		"check --max":                      "--max-age --max-dead --max-lag --max-lost",
		"processor reset orders/printer x": "",
		"nothing ":                         "",
	} {
		words := strings.Split(line, " ")
		if got := s.completed(words...); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := s.completed(""); !slices.Contains(got, "doctor") {
		t.Errorf("of nothing: %q", got)
	}
	if got := s.completed("--redis-url", "redis://127.0.0.1:1", "tail", ""); len(got) != 0 {
		t.Errorf("without Redis: %q", got)
	}
}
