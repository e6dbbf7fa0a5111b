package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
)

// poison sets a title, clears the screen, forges a line and a column, reverses text, has C1 and
// DEL, and ends with invalid UTF-8.
const poison = "x\x1b]0;PWNED\x07\x1b[2J\nforged\tcolumn\r\u009b31m\u202eabc\x7f\U000e0041\u2028\xff"

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"plain é 😀":        "plain é 😀",
		"a\x1b[2Jb":        `a\u001b[2Jb`,
		"a\nb\tc":          `a\u000ab\u0009c`,
		"\u009b\u202e":     `\u009b\u202e`,
		"\x9b\xff":         `\x9b\xff`,
		"\U000e0041":       `\udb40\udc41`,
		"\x7f\u2028\ufeff": `\u007f\u2028\ufeff`,
	} {
		if got := shown(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

func TestPrintfKeepsArgumentsInTheirPlace(t *testing.T) {
	type name string
	var b bytes.Buffer
	printf(&b, "%s\t%v\t%q\t%-4s|%d %v\n", name("a\tb"), errors.New("c\nd"), "e\x1b", "f", 7, nil)
	if got, want := b.String(), `a\u0009b`+"\t"+`c\u000ad`+"\t"+`"e\x1b"`+"\tf   |7 <nil>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEscapingPassesLinesAndSplitCharacters(t *testing.T) {
	for _, json := range []bool{false, true} {
		var b bytes.Buffer
		w := &escaping{w: &b, json: json}
		for i := range len("é😀\n\u009b\t") {
			w.Write([]byte("é😀\n\u009b\t")[i : i+1])
		}
		w.Write([]byte("\xffa"))
		want := "é😀\n\\u009b\t" + map[bool]string{false: `\xff`, true: `\ufffd`}[json] + "a"
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
}

// clean fails if a command's output controls a terminal, or has a forged line.
func (r result) clean(t *testing.T, what string) {
	t.Helper()
	for _, text := range []string{r.out, r.err} {
		for _, c := range text {
			if c != '\n' && steers(c) {
				t.Errorf("%s: has %q: %q", what, c, text)
				break
			}
		}
		if !utf8.ValidString(text) || strings.Contains(text, "\nforged") {
			t.Errorf("%s: got %q", what, text)
		}
	}
}

// Keys, records, fields, headers, errors, reasons and names cannot control the terminal.
func TestNoCommandLetsTextsControlTheTerminal(t *testing.T) {
	t.Setenv("USER", poison)
	s, ada, bob := two(t, 6)
	ada.bury(poison, poison)
	bob.park(poison)
	ada.must(ada.c.Halted(t.Context(), ada.place, ada.tenure, store.Quarantine{Reason: poison, Event: "9999999999999-0" + poison, Worker: poison}))
	ada.must(ada.c.Quarantine(t.Context(), ada.place, ada.tenure, store.Quarantine{Reason: poison, Event: poison, Worker: poison}))
	k := s.client().Keys()
	for partition := range 2 {
		for _, data := range []string{`{"customer":"x` + strings.ReplaceAll(poison, "\n", " ") + `"}`, poison} {
			err := s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: k.Partition("orders", partition), Values: []any{
				"data", data, "__key", poison, poison, poison, "__h." + poison, poison}}).Err()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.orders.SendEvents(t.Context(), runnel.Outgoing[order]{Key: "a" + poison, After: time.Hour, Headers: map[string]string{poison: poison}}); err != nil {
		t.Fatal(err)
	}
	s.run("pause", "orders/printer", "--why", poison).clean(t, "pause")
	s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: k.Audit(), Values: []any{"who", poison, "from", poison, "what", poison, "on", poison, "why", poison}})
	name, err := json.Marshal(poison)
	if err != nil {
		t.Fatal(err)
	}
	membership := fmt.Sprintf(`{"v":1,"generation":1,"partitions":2,"executors":{"aaaaaaaaaaaaaaaa":{"worker":%s,"joined_at":1,"expiry_ms":1000,"partitions":[0,1]}}}`, name)
	s.rdb.Set(t.Context(), k.Membership("orders", "printer"), membership, 0)
	shows := map[string]bool{"status orders": true, "workers ls": true, "dead ls orders/printer": true, "dead show orders/printer": true, "parked ls orders/printer": true,
		"rules ls": true, "tail orders --from start": true, "tail orders --from start --raw": true, "delayed ls orders": true, "audit ls": true}
	for _, command := range []string{
		"status", "status orders", "status orders/printer", "status --output wide", "workers ls", "check", "doctor", "stream ls", "stream info orders", "stream verify orders",
		"tail orders --from start", "tail orders --from start --raw", "processor ls", "processor info orders/printer", "dead ls orders/printer", "dead show orders/printer",
		"parked ls orders/printer", "delayed ls orders", "rules ls", "audit ls", "dead replay orders/printer --dry-run", "dead drop orders/printer --all --dry-run",
		"send orders {} --key \x1b[2J", "tail \x1b[2J", "\x1b[2J", "processor reset orders/printer --to \x1b[2J", "processor info orders/\u009b", "dead ls orders/printer --id \x1b[2J",
		"dead drop orders/printer --all --yes",
	} {
		args := strings.Fields(command)
		typed := s.run(args...)
		typed.clean(t, command)
		if shows[command] && !strings.Contains(typed.out, `\u001b]0;PWNED\u0007`) && !strings.Contains(typed.out, `\x1b]0;PWNED\a`) {
			t.Errorf("%s does not show it: %s%s", command, typed.out, typed.err)
		}
		s.untyped(args...).clean(t, command+", untyped")
		r := s.run(append(args, "--output", "json")...)
		r.clean(t, command+", as JSON")
		for line := range strings.Lines(r.out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: no JSON: %q", command, line)
			}
		}
	}
}
