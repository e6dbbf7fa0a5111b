package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/test/notes"
)

func init() { extension.Known(notes.New()) } // as the runnel binary does

// noted is a shop whose app has registered notes.
func noted(t *testing.T) *shop {
	s := newShop(t, nil)
	extension.Register(s.app, notes.New())
	return s
}

func TestExtensionHasAGroupOfCommands(t *testing.T) {
	s := noted(t)
	s.run("--help").want(t, 0, "notes       keep notes for other operators", "")
	s.run("notes", "--help").want(t, 0, "add  add a note, or replace", "")
	s.run("notes", "add", "--help").want(t, 0, "--sign NAME", "")
	s.run("notes").want(t, 2, "", "a command is needed: add")
	s.run("notes", "ad").want(t, 2, "", "did you mean add?")
	s.run("notes", "add", "gate").want(t, 2, "", "a note needs a name and a text; see")
	s.run("notes", "add", "gate", "mind", "the step").want(t, 2, "", "Add note gate? There is no terminal to ask at: say --yes")
	s.run("notes", "add", "gate", "mind", "the step", "--yes", "--sign", "ada", "--why", "ice").want(t, 0, "note gate added\n", "")
	got := parse[map[string]string](t, s.run("notes", "add", "door", "shut", "-y", "--output", "json"))
	if got["name"] != "door" || got["text"] != "shut" {
		t.Errorf("%v", got)
	}
	if all := s.rdb.HGetAll(t.Context(), "__notes:shop.all").Val(); all["gate"] != "mind the step (ada)" || all["door"] != "shut" {
		t.Errorf("%v", all)
	}
	audit := parse[[]inspect.AuditState](t, s.run("audit", "ls", "--output", "json"))
	if len(audit) != 2 || audit[1].What != "notes/add" || audit[1].On != "gate" || audit[1].Why != "ice" || audit[1].Outcome != "done" || audit[1].From != "command line" {
		t.Errorf("%+v", audit)
	}
}

// Without an app's code a group shows where Redis has something of the extension.
func TestKnownExtensionShowsWhereItIs(t *testing.T) {
	s := newShop(t, nil)
	shows := func() bool {
		help, flag := s.untyped("--help"), s.untypedRaw(completeWord, "--app", "shop", "not")
		if got := strings.Contains(help.out, "keep notes"); help.code != 0 || got != slices.Equal(strings.Fields(flag.out), []string{"notes"}) {
			t.Errorf("the help shows it: %v, completed is %q", got, flag.out)
		}
		return strings.Contains(help.out, "keep notes")
	}
	if shows() {
		t.Error("notes show where there are none")
	}
	s.untyped("notes", "add", "gate", "x", "--yes").want(t, 1, "", "app shop at ")
	if n := s.rdb.Exists(t.Context(), "__notes:shop.all").Val(); n != 0 {
		t.Error("a command ran where there are no notes")
	}
	if _, err := notes.Add(t.Context(), s.client(), "gate", "x"); err != nil {
		t.Fatal(err)
	}
	if !shows() {
		t.Error("notes do not show")
	}
	s.untyped("notes", "add", "gate", "y", "--yes").want(t, 0, "note gate added\n", "")
	run(t.Context(), nil, "", "--help", "--app", "shop", "--redis-url", "redis://127.0.0.1:1").want(t, 0, "quarantine", "")
	for _, args := range [][]string{{"--help"}, {"--help", "--app", "shop", "--redis-url", "redis://127.0.0.1:1"}} {
		if r := run(t.Context(), nil, "", args...); r.code != 0 || strings.Contains(r.out, "keep notes") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
