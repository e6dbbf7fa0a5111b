package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/admin"
)

// reset resets the processor, and returns what it says of each partition.
func (s *shop) reset(args ...string) []admin.Move {
	s.t.Helper()
	return told[[]admin.Move](s, append([]string{"processor", "reset", "--yes", "orders/printer"}, args...)...)
}

// idsOf are the entries of a partition, and "0-0" before them.
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
	// What was kept is not written over.
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

// With a position in one partition, that one alone is exported, and nothing if there is none.
func TestResetExportsThePartitionOfAnEvent(t *testing.T) {
	s := owned(t, 4)
	s.untyped("processor", "reset", "orders/printer", "--to", "7/1-0", "--export", "-").want(t, 1, "", "no partition 7")
	r := s.untyped("processor", "reset", "--dry-run", "orders/printer", "--to", "1/1-0", "--export", "-")
	if r.code != 0 || strings.Contains(r.out, `"0":`) || !strings.Contains(r.out, `"1":`) {
		t.Errorf("%+v", r)
	}
	// A partition that cannot be read is in the way of none but its own.
	s.rdb.Set(t.Context(), s.client().Partition("orders", "printer", 0).Dead, "x", 0)
	s.untyped("processor", "reset", "orders/printer", "--partitions", "1", "--export", "-").want(t, 0, `"1":`, "")
	// What is not there is told before anything is asked.
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

// In text, a reset prints a line per partition: where it was, where it is.
func TestResetPrintsOldAndNew(t *testing.T) {
	s := owned(t, 10)
	before := s.processor()
	r := s.untyped("processor", "reset", "--yes", "orders/printer", "--start", "start")
	r.want(t, 0, "PARTITION", "")
	for _, p := range before.Partitions {
		want := regexp.MustCompile(`(?m)^` + string(rune('0'+p.Partition)) + ` +` + regexp.QuoteMeta(p.Floor) + ` +→ +0-0`)
		if !want.MatchString(r.out) {
			t.Errorf("no %s in\n%s", want, r.out)
		}
	}
}
