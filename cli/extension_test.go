package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
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
	s.run("notes", "--help").want(t, 0, "add         add a note, or replace", "")
	s.run("notes", "add", "--help").want(t, 0, "--sign NAME", "")
	s.run("notes").want(t, 2, "", "a command is needed: add")
	s.run("notes", "drop").want(t, 2, "", `unknown command "drop"; there is add`)
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
		help, found := s.untyped("--help"), s.completed("--app", "shop", "not")
		if got := strings.Contains(help.out, "keep notes"); help.code != 0 || got != slices.Equal(found, []string{"notes"}) {
			t.Errorf("the help shows it: %v, completed is %q", got, found)
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

// boarded is a shop with the stream board and its processor keeper, of which notes has the part pins with three
// dead notes.
func boarded(t *testing.T) *shop {
	s := noted(t)
	if _, err := s.client().EnsureMeta(t.Context(), "board", store.Meta{Partitions: 2, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: []string{"keeper"}}); err != nil {
		t.Fatal(err)
	}
	for name, why := range map[string]string{"door": "wind took it", "gate": "rain fell", "wall": "wind again"} {
		if err := notes.Tear(t.Context(), s.client(), name, why); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestDeadOfAPart(t *testing.T) {
	s := boarded(t)
	s.untyped("dead", "ls").matches(t, `(?m)^board/pins +3 +door +door `)
	s.run("dead", "ls", "board/pins").matches(t, `(?m)^gate +- +gate +1 .* torn +rain fell$`)
	all := parse[[]extension.Failure](t, s.run("dead", "ls", "board/pins", "--error", "WIND", "--limit", "1", "--output", "json"))
	if len(all) != 1 || all[0].ID != "door" || all[0].State != extension.Dead || all[0].Error != "wind took it" {
		t.Errorf("%+v", all)
	}
	s.run("dead", "show", "board/pins", "--id", "wall").matches(t, `(?m)^dead letter +wall$`, `(?m)^field "torn by" +"wind"$`)
	s.run("dead", "replay", "board/pins", "--yes").want(t, 1, "", "what is dead at board/pins is no event, so it cannot be appended to a stream: dead retry board/pins tries it again")
	s.run("dead", "retry", "board/pins", "--id", "gate").want(t, 0, "1 dead note retried\n", "")
	s.run("dead", "drop", "board/pins", "--yes").want(t, 2, "", "say --all")
	got := parse[changedLetters](t, s.run("dead", "drop", "board/pins", "--key", "wall", "--yes", "--output", "json"))
	if len(got.Dropped) != 1 || got.Dropped[0].ID != "wall" || got.Stream != "board" || got.Processor != "pins" {
		t.Errorf("%+v", got)
	}
	if left := s.rdb.HKeys(t.Context(), "__notes:shop.dead").Val(); !slices.Equal(left, []string{"door"}) {
		t.Errorf("left %q", left)
	}
	if mended := s.rdb.HGet(t.Context(), "__notes:shop.all", "gate").Val(); mended != "mended" {
		t.Errorf("retried: %q", mended)
	}
	s.run("parked", "ls", "board/pins").want(t, 1, "", "at board/pins nothing waits for another attempt by itself")
	s.run("dead", "ls", "board/wall").want(t, 1, "", `stream board has no processor "wall"; it has keeper`)
	s.run("dead", "ls", "board/keeper", "--id", "gate").want(t, 2, "", `--id "gate" is no ID`)
}

func TestPartsAreCompleted(t *testing.T) {
	s := boarded(t)
	for line, want := range map[string]string{
		"pause --app shop board/": "board/keeper board/pins", "dead --app shop drop board/p": "board/pins", "processor --app shop reset board/": "board/keeper",
	} {
		if got := s.completed(strings.Split(line, " ")...); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestPauseOfAPart(t *testing.T) {
	s := boarded(t)
	s.run("pause", "board/wall").want(t, 1, "", `stream board has no processor "wall"; it has keeper, pins`)
	s.run("pause", "board/pins", "--who", "ada", "--wait").want(t, 0, "pause of processor:board/pins by ada; nothing runs any more\n", "")
	s.untyped("block", "board/pins", "--partition", "1", "--as-admin").want(t, 0, "block of partition:board/pins/1", "")
	s.untyped("pause", "board/wall", "--yet").want(t, 0, "pause of processor:board/wall", "")
	for _, r := range printed[[]inspect.RuleState](s, "rules", "ls") {
		if want := r.Scope == "processor:board/wall"; r.Absent != want {
			t.Errorf("%s is absent: %v", r.Scope, r.Absent)
		}
	}
	s.run("resume", "board/pins").want(t, 0, "the pause of processor:board/pins is removed\n", "")
	s.run("unblock", "board/pins", "--partition", "1", "--as-admin").want(t, 0, "is removed", "")
}

func TestFindingsAndStatusOfAnExtension(t *testing.T) {
	s := boarded(t)
	s.run("doctor").matches(t, `(?m)^ok +notes: it finds nothing$`)
	for _, name := range []string{"door", "gate", "wall"} {
		if _, err := notes.Add(t.Context(), s.client(), name, "mind it"); err != nil {
			t.Fatal(err)
		}
	}
	const found = "3 notes, above 2: read them"
	if r := s.run("doctor"); r.code != 3 || !strings.Contains(r.out, "problem  notes: "+found+"\n") {
		t.Errorf("%+v", r)
	}
	for _, tt := range []struct {
		of   string
		says bool
	}{{"", true}, {"board", true}, {"board/keeper", false}} {
		r := s.untyped(strings.Fields("check " + tt.of)...)
		if r.code != 3 || strings.Contains(r.out, found) != tt.says {
			t.Errorf("check %s: %+v", tt.of, r)
		}
	}
	s.untyped("status").matches(t, `(?m)^notes: 3$`, `(?m)^`+found)
	s.run("status", "--output", "wide").want(t, 0, "\nnotes: 3\n", "")
	if got := printed[inspect.AppState](s, "status").Extensions; len(got) != 1 || !slices.Equal(got["notes"], []string{"notes: 3"}) {
		t.Errorf("%q", got)
	}
	s.rdb.Del(t.Context(), "__notes:shop.all")
	s.rdb.Set(t.Context(), "__notes:shop.all", "no hash", 0)
	s.untyped("status").want(t, 0, "extension notes cannot be read: WRONGTYPE", "")
	s.untyped("check").want(t, 1, "", "extension notes: WRONGTYPE")
}
