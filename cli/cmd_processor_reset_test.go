package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
)

// reset resets the processor, and returns the moves.
func (s *shop) reset(args ...string) []admin.Move {
	s.t.Helper()
	return printed[[]admin.Move](s, append([]string{"processor", "reset", "--yes", "orders/printer"}, args...)...)
}

// idsOf returns the entry IDs of a partition, after "0-0".
func (s *shop) idsOf(partition int) (ids []string) {
	ids = []string{"0-0"}
	for _, e := range s.entries()[fmt.Sprint("__strm:shop.orders.", partition)] {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestResetBySteps(t *testing.T) {
	s := owned(t, 20)
	first, second := s.idsOf(0), s.idsOf(1)
	s.reset("--to", "start")
	for _, tt := range []struct {
		to        string
		old, want int // positions of partition 0
	}{{"+3", 0, 3}, {"-1", 3, 2}, {"+0", 2, 2}, {"-100", 2, 0}, {"+1000", 0, len(first) - 1}} {
		moves := s.reset("--to", tt.to)
		if len(moves) != 2 || moves[0].Old != first[tt.old] || moves[0].New != first[tt.want] || s.processor().Partitions[0].Floor != first[tt.want] {
			t.Errorf("%s: %+v", tt.to, moves)
		}
	}
	// Only some partitions.
	if moves := s.reset("--to", "start", "--partitions", "1"); len(moves) != 1 || moves[0].Partition != 1 || moves[0].Old != second[len(second)-1] {
		t.Errorf("%+v", moves)
	}
	if now := s.processor(); now.Partitions[0].Lag != 0 || now.Partitions[1].Lag != int64(len(second)-1) {
		t.Errorf("%+v", now.Totals)
	}
}

func TestResetToATime(t *testing.T) {
	s := owned(t, 4)
	middle := time.Now()
	time.Sleep(20 * time.Millisecond)
	s.send(4)
	for _, to := range []string{"@" + middle.UTC().Format(time.RFC3339Nano), middle.Format(time.RFC3339Nano)} {
		s.reset("--to", "start")
		s.reset("--to", to)
		if lag := s.processor().Totals.Lag; lag != 4 {
			t.Errorf("%s: lag %d, want 4", to, lag)
		}
	}
	s.reset("--to", "end")
	s.reset("--to", "-1h")
	if lag := s.processor().Totals.Lag; lag != 8 {
		t.Errorf("an hour ago: lag %d, want 8", lag)
	}
}

func TestResetPreviews(t *testing.T) {
	s := owned(t, 20)
	ids := s.idsOf(0)
	before := s.processor()
	moves := s.reset("--to", "-2", "--dry-run")
	if len(moves) != 2 || moves[0].Old != ids[len(ids)-1] || moves[0].New != ids[len(ids)-3] {
		t.Errorf("%+v", moves)
	}
	if moves = s.reset("--to", "end", "--dry-run"); moves[0].New != ids[len(ids)-1] {
		t.Errorf("%+v", moves)
	}
	now := s.processor()
	for i := range now.Partitions {
		if now.Partitions[i].Floor != before.Partitions[i].Floor || now.Partitions[i].Epoch != before.Partitions[i].Epoch {
			t.Errorf("a preview changed %+v to %+v", before.Partitions[i], now.Partitions[i])
		}
	}
}

func TestResetExportsAndImports(t *testing.T) {
	s := owned(t, 20)
	file := filepath.Join(t.TempDir(), "positions.json")
	s.reset("--to", "-3")
	var want []string
	for _, p := range s.processor().Partitions {
		want = append(want, p.Floor)
	}
	s.reset("--to", "start", "--export", file)
	s.reset("--import", file)
	for i, p := range s.processor().Partitions {
		if p.Floor != want[i] {
			t.Errorf("partition %d: %s, want %s", i, p.Floor, want[i])
		}
	}
	r := s.untyped("processor", "reset", "--yes", "orders/printer", "--export", "-", "--partitions", "1")
	if text, _ := os.ReadFile(file); r.code != 0 || !strings.Contains(string(text), `"0": "`+want[0]+`"`) || strings.Contains(r.out, `"0":`) || !strings.Contains(r.out, `"1": "`+want[1]+`"`) {
		t.Errorf("%+v, %s", r, text)
	}
	// An existing file is not overwritten.
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "start", "--export", file).want(t, 1, "", "exists")
	const head = `{"v":1,"app":"shop","stream":"orders",`
	for text, says := range map[string]string{
		`{"v":2,"positions":{"0":"1-0"}}`: "another version", `{"v":1}`: "no positions", head + `"positions":{"7":"1-0"}}`: "no partition 7 of 2",
		head + `"positions":{"0":"$"}}`: `"$" is no entry ID`, `nothing`: "invalid character", `{"v":1,"app":"shop","stream":"parcels","positions":{"0":"1-0"}}`: "stream parcels of app shop",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.untyped("processor", "reset", "--yes", "orders/printer", "--import", file).want(t, 1, "", says)
	}
}

// With a position in one partition, only that partition is exported, and nothing if it does not
// exist.
func TestResetExportsThePartitionOfAnEvent(t *testing.T) {
	s := owned(t, 4)
	s.untyped("processor", "reset", "orders/printer", "--to", "7/1-0", "--export", "-").want(t, 1, "", "no partition 7")
	r := s.untyped("processor", "reset", "--dry-run", "orders/printer", "--to", "1/1-0", "--export", "-")
	if r.code != 0 || strings.Contains(r.out, `"0":`) || !strings.Contains(r.out, `"1":`) {
		t.Errorf("%+v", r)
	}
	// An unreadable partition does not hinder the others.
	s.rdb.Set(t.Context(), s.client().Partition("orders", "printer", 0).Dead, "x", 0)
	s.untyped("processor", "reset", "orders/printer", "--partitions", "1", "--export", "-").want(t, 0, `"1":`, "")
	// Unknown names are reported before any question.
	s.untyped("processor", "reset", "orders/printr", "--import", "nowhere.json").want(t, 1, "", `no processor "printr"`)
	s.untyped("quarantine", "release", "orders/printr", "--partition", "0", "--skip").want(t, 1, "", `no processor "printr"`)
}

func TestResetMistakes(t *testing.T) {
	s := owned(t, 1)
	for args, says := range map[string]string{
		"--to yesterday":                  `"yesterday" is none of start, end`,
		"--to 1h":                         `"1h" is none of start, end`,
		"--to +99999999999999999999":      "is too far",
		"--to start --import x":           "one of --to and --import",
		"--partitions 0":                  "one of --to and --import",
		"--to start --partitions 2":       "there is no partition 2 of 2",
		"--to start --partitions 1-0":     `"1-0": say partitions as in 0-3,7`,
		"--to start --partitions ,":       "say partitions as in 0-3,7",
		"--import x --partitions 0":       "--import says which partitions",
		"--to 18446744073709551616":       "is too large",
		"--to @2026-01-31 --partitions 0": "is none of start, end",
		"--to -9223372036854775808":       "is too far",
	} {
		s.untyped(slices.Concat([]string{"processor", "reset", "--yes", "orders/printer"}, strings.Fields(args))...).want(t, 2, "", says)
	}
	for _, name := range []string{"--to", "--import", "--export", "--partitions"} {
		s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "start", name, "").want(t, 2, "", name+" says nothing")
	}
	s.untyped("processor", "move", "orders/printer", "", "w1").want(t, 2, "", "say STREAM/PROCESSOR")
}

// In text, a reset prints the old and the new position of each partition.
func TestResetPrintsOldAndNew(t *testing.T) {
	s := owned(t, 10)
	before := s.processor()
	r := s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "start")
	r.want(t, 0, "PARTITION", "")
	for _, p := range before.Partitions {
		want := regexp.MustCompile(`(?m)^` + string(rune('0'+p.Partition)) + ` +` + regexp.QuoteMeta(p.Floor) + ` +→ +0-0`)
		if !want.MatchString(r.out) {
			t.Errorf("no %s in\n%s", want, r.out)
		}
	}
}

func TestReset(t *testing.T) {
	s := owned(t, 20)
	before := s.processor()
	for _, tt := range []struct {
		to   string
		lag  int64
		want func(inspect.PartitionState) string
	}{
		{"start", 20, func(inspect.PartitionState) string { return "0-0" }},
		{"end", 0, func(p inspect.PartitionState) string { return p.End }},
		{"0", 20, func(inspect.PartitionState) string { return "0-0" }},
		{"99999999999999-7", 0, func(p inspect.PartitionState) string { return p.End }}, // never behind the end
	} {
		t.Run(tt.to, func(t *testing.T) {
			old := s.processor()
			moves := s.reset("--to", tt.to)
			if len(moves) != 2 {
				t.Fatalf("%+v", moves)
			}
			now := s.processor()
			for i, m := range moves {
				if m.Partition != i || m.Old != old.Partitions[i].Floor || m.New != tt.want(now.Partitions[i]) || m.New != now.Partitions[i].Floor {
					t.Errorf("%+v, before %+v, now %+v", m, old.Partitions[i], now.Partitions[i])
				}
			}
			if aged := now.Totals.Age > 0; aged != (tt.lag > 0) {
				t.Errorf("lag %d, age %d", tt.lag, now.Totals.Age)
			}
			now.Totals.Age = 0
			if now.Totals != (inspect.Totals{Lag: tt.lag, Length: before.Totals.Length}) {
				t.Errorf("totals %+v", now.Totals)
			}
		})
	}
}

func TestResetIsWhereTheNextWorkerBegins(t *testing.T) {
	s := owned(t, 20)
	middle := s.entries()["__strm:shop.orders.0"][3].ID
	s.untyped("processor", "reset", "--yes", "--to", middle, "orders/printer").want(t, 0, "→", "")
	want := map[string]bool{}
	for key, entries := range s.entries() {
		for _, e := range entries {
			if after(e.ID, middle) {
				want[key+" "+e.ID] = true
			}
		}
	}
	next := newShopAgain(t, s)
	seen := make(chan string, 100)
	next.orders.Process("printer", func(ctx context.Context, events *runnel.Events[order]) error {
		for e := range events.All() {
			seen <- fmt.Sprintf("__strm:shop.orders.%d %s", e.Partition, e.ID)
		}
		return nil
	}, nil)
	w := next.start("worker")
	for range len(want) {
		event := receive(t, seen, "event")
		if !want[event] {
			t.Errorf("event %s was handled", event)
		}
		delete(want, event)
	}
	eventually(t, "no lag", func() bool { return s.processor().Totals.Lag == 0 })
	w.stop().want(t, 0, "", "worker stopped")
	if len(seen) != 0 {
		t.Errorf("%d events more", len(seen))
	}
}

func TestResetRefusesWhileAWorkerRuns(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2})
	handled := s.handled()
	s.send(4)
	w := s.start("worker")
	for range 4 {
		receive(t, handled, "event")
	}
	r := s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "start")
	r.want(t, 1, "", s.processor().Members[0].Worker)
	r.want(t, 1, "", "nothing was changed")
	s.sends(order{Customer: "still here"})
	if got := receive(t, handled, "event"); got != "still here" {
		t.Errorf("handled %q", got)
	}
	w.stop().want(t, 0, "", "worker stopped")
}

func TestResetRefusesALockedPartition(t *testing.T) {
	s := owned(t, 4)
	before := s.processor()
	if err := s.rdb.Set(t.Context(), "__lock:shop.orders.printer.1", "aaaaaaaaaaaaaaaa:0000000000000001", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "start").want(t, 1, "", "partition 1: processor printer: owned by executor aaaaaaaaaaaaaaaa")
	now := s.processor()
	if now.Partitions[0].Executor != "" {
		t.Errorf("partition 0 is still locked: %+v", now.Partitions[0])
	}
	for i := range now.Partitions {
		if now.Partitions[i].Floor != before.Partitions[i].Floor || now.Partitions[i].Epoch != before.Partitions[i].Epoch {
			t.Errorf("changed: %+v, %+v", before.Partitions[i], now.Partitions[i])
		}
	}
	if ttl := s.rdb.PTTL(t.Context(), "__lock:shop.orders.printer.1").Val(); ttl < 50*time.Minute {
		t.Errorf("the foreign lock was cut down to %v", ttl)
	}
}

func TestResetOfAProcessorThatDoesNotExist(t *testing.T) {
	s := newShop(t, nil)
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "end").want(t, 1, "", `no stream "orders"`)
	s.send(1)
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "end").want(t, 1, "", `no processor "printer"`)
}

func newShopAgain(t *testing.T, s *shop) *shop {
	return shopAt(t, s.url, s.rdb, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
}

func after(a, b string) bool {
	var ams, aseq, bms, bseq uint64
	fmt.Sscanf(a, "%d-%d", &ams, &aseq)
	fmt.Sscanf(b, "%d-%d", &bms, &bseq)
	return ams > bms || ams == bms && aseq > bseq
}

// An event's name in lists and logs is a position, too.
func TestAnEventIsAPosition(t *testing.T) {
	s, _, _ := two(t, 6)
	all := s.entries()["__strm:shop.orders.1"]
	one := eventID(1, all[1].ID)
	for _, key := range s.rdb.Keys(t.Context(), "__lock:*").Val() {
		s.rdb.Del(t.Context(), key)
	}
	shown := s.untyped("tail", "orders", "--from", one, "--partition", "1")
	if lines := strings.Split(strings.TrimSpace(shown.out), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "  "+one+"  ") {
		t.Errorf("shown %q", shown.out)
	}
	moves := printed[[]admin.Move](s, "processor", "reset", "orders/printer", "--to", one, "--yes")
	if len(moves) != 1 || moves[0].Partition != 1 || moves[0].New != all[1].ID {
		t.Errorf("moved %+v", moves)
	}
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", one, "--partitions", "1").want(t, 2, "", "--to says which partition")
	s.untyped("processor", "reset", "--yes", "orders/printer", "--to", "2/1-0").want(t, 1, "", "stream orders has no partition 2")
}
