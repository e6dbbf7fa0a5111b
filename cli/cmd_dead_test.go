package cli

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/middleware"
)

func TestDeadLs(t *testing.T) {
	s, ada, bob := two(t, 6)
	ada.bury("ada", "no\nink")
	bob.bury("bob", strings.Repeat("paper jam ", 50))
	all := printed[[]admin.DeadLetter](s, "dead", "ls", "orders/printer")
	first := slices.IndexFunc(all, func(d admin.DeadLetter) bool { return d.Key == "bob" })
	if len(all) != 6 || all[0].Event != eventID(0, ada.entries[0].ID) || first < 0 || all[first].Event != eventID(1, bob.entries[0].ID) || all[0].Error != "no\nink" ||
		all[0].Attempts != 3 || all[0].Reason != "failed" || all[0].Epoch != 7 || all[0].First == nil || all[0].Last == nil {
		t.Fatalf("got %+v", all)
	}
	s.untyped("dead", "ls", "orders/printer").matches(t,
		`^ID +EVENT +KEY +ATTEMPTS +DIED +REASON +ERROR\n`,
		`(?m)^`+all[0].ID+` +`+all[0].Event+` +ada +3 +\S+ ago +failed +no ink$`,
		`(?m)^`+all[first].ID+` .* bob .*paper jam.*…$`)
	newest := slices.MaxFunc(all, func(a, b admin.DeadLetter) int { return a.Died.Compare(b.Died) })
	over := printed[[]listedDead](s, "dead", "ls")
	if len(over) != 1 || over[0].Dead != 6 || over[0].Unknown != 0 || over[0].Newest == nil || !over[0].Newest.Died.Equal(newest.Died) {
		t.Errorf("of all processors: %+v", over)
	}
	s.untyped("dead", "ls").matches(t, `^PROCESSOR +DEAD +NEWEST +KEY`, `(?m)^orders/printer +6 +`+over[0].Newest.ID+` +`+over[0].Newest.Key+` +\S+ ago +failed +(paper jam|no ink)`,
		`(?m)^dead ls orders/printer lists them, dead show orders/printer --id `+over[0].Newest.ID+` shows one$`)
	s.untyped("dead", "ls", "--key", "ada").want(t, 2, "", "which processor?")
	for flags, want := range map[string]int{
		"--key ada": 3, "--since 1h": 6, "--since 1ns": 0, "--error jam": 3, "--partition 0 --limit 2": 2, "--id " + all[first].ID: 1, "--id " + all[0].Event: 1,
	} {
		args := append([]string{"dead", "ls", "orders/printer", "--output", "json"}, strings.Fields(flags)...)
		if got := parse[[]admin.DeadLetter](t, s.run(args...)); len(got) != want {
			t.Errorf("%s: %d dead letters, want %d", flags, len(got), want)
		}
	}
}

// Dead letters of middleware.DeadLetter are elsewhere: the commands tell where.
func TestDeadLettersOfTheMiddlewareAreNamed(t *testing.T) {
	s, _, _ := two(t, 2)
	s.untyped("dead", "ls", "orders/printer").want(t, 0, "ID", "")
	if err := middleware.DeadLetters(s.orders).Send(t.Context(), middleware.Dead{Key: "ada"}); err != nil {
		t.Fatal(err)
	}
	const hint = "orders/printer has no such dead letters of a Retry; what middleware.DeadLetter moves is in stream orders.dead: tail orders.dead"
	for _, args := range []string{"ls", "show", "retry", "replay", "drop --all"} {
		r := s.untyped(append(append([]string{"dead"}, strings.Fields(args)...), "orders/printer")...)
		if r.code != 0 || !strings.Contains(r.err, hint) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	s.untyped("dead", "ls", "orders/printer", "-o", "json").want(t, 0, "[]", "")
}

func TestDeadShow(t *testing.T) {
	s, ada, _ := two(t, 2)
	ada.entries[0].Values["blob"] = "\x00\xff"
	ada.bury("ada", "no\nink")
	r := s.run("dead", "show", "orders/printer")
	r.matches(t, `dead letter +0/\d+-0`, `event +`+eventID(0, ada.entries[0].ID), `key +"ada"`, `reason +failed`, `attempts +3`, `first failure +20`, `last failure +20`,
		`died +20`, `epoch +7`, `error +"no\\nink"`, `field "blob" +"\\x00\\xff"`, `field "data" +"{\\"customer\\":\\"ada\\",\\"amount\\":0}"`,
		`record +{"customer":"ada","amount":0}`)
	shown := parse[[]shownLetter](t, s.run("dead", "show", "orders/printer", "--output", "json"))
	if len(shown) != 1 || shown[0].Fields["data"] != `{"customer":"ada","amount":0}` || shown[0].Base64["blob"] != base64.StdEncoding.EncodeToString([]byte("\x00\xff")) ||
		shown[0].Event != eventID(0, ada.entries[0].ID) || string(shown[0].Record) != `{"customer":"ada","amount":0}` {
		t.Errorf("got %+v", shown)
	}
	// Without the app's types, the codec comes from the metadata.
	if shown = printed[[]shownLetter](s, "dead", "show", "orders/printer"); len(shown) != 1 || string(shown[0].Record) != `{"customer":"ada","amount":0}` {
		t.Errorf("got %+v", shown)
	}
}

func TestDeadDrop(t *testing.T) {
	s, ada, bob := two(t, 6)
	ada.bury("ada", "no ink")
	bob.bury("bob", "no paper")
	s.untyped("dead", "drop", "--yes", "orders/printer").want(t, 2, "", "say --all")
	s.untyped("dead", "drop", "--yes", "orders/printer", "--key", "ada", "--dry-run").want(t, 0, "3 dead letters would be dropped:\nID", "")
	if n := s.processor().Totals.Dead; n != 6 {
		t.Fatalf("%d dead letters after a dry run", n)
	}
	s.untyped("dead", "drop", "--yes", "orders/printer", "--key", "ada", "--limit", "1").want(t, 0, "1 dead letter dropped\n", "")
	left := parse[[]admin.DeadLetter](t, s.untyped("dead", "ls", "orders/printer", "--output", "json", "--key", "ada"))
	if len(left) != 2 || left[0].Event != eventID(0, ada.entries[1].ID) {
		t.Errorf("left %+v", left)
	}
	got := parse[changedLetters](t, s.run("dead", "drop", "--yes", "orders/printer", "--all", "--output", "json"))
	if len(got.Dropped) != 5 || got.DryRun || s.processor().Totals.Dead != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestDeadLettersOfAProcessorThatIsGone(t *testing.T) {
	s, ada, _ := two(t, 2)
	ada.bury("ada", "no ink")
	meta := s.rdb.Get(t.Context(), "__meta:shop.orders").Val()
	s.rdb.Set(t.Context(), "__meta:shop.orders", strings.Replace(meta, `"processors":["printer"]`, `"processors":[]`, 1), 0)
	s.untyped("dead", "ls", "orders/printer").want(t, 0, "no ink", "")
	s.untyped("dead", "retry", "orders/printer").want(t, 1, "", "no processor printer any more")
	s.untyped("dead", "retry", "orders/printr").want(t, 1, "", `no processor "printr"`) // which never existed
	s.untyped("dead", "replay", "--yes", "orders/printer").want(t, 0, "1 dead letter replayed\n", "")
	s.untyped("dead", "ls", "orders/printer").want(t, 1, "", `no processor "printer"`)
}

// An unreadable partition does not hide the dead letters of the others.
func TestDeadLsWhereAPartitionCannotBeRead(t *testing.T) {
	s, ada, bob := two(t, 2)
	ada.bury("ada", "no ink")
	s.rdb.Set(t.Context(), bob.place.Dead, "x", 0)
	s.untyped("dead", "ls").matches(t, `(?m)^orders/printer +>1 +0/\S+ +ada .* no ink$`)
}
