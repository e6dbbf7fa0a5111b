// The judge finds what must not be.

package exact_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/test/exact"
)

// perfect returns what is right of n events of two keys in one partition, with their outputs in another one.
func perfect(n int) exact.Stage {
	var events, outs []exact.Entry
	rows, all := map[string]exact.Row{}, exact.Row{}
	for i := range n {
		e := exact.Entry{ID: fmt.Sprint(1000+i, "-0"), Mark: exact.Mark{Key: fmt.Sprint("k", i%2), N: int64(i)}}
		nonce := uint64(100 + i)
		events = append(events, e)
		rows[e.Mark.Key] = rows[e.Mark.Key].Add(e, nonce, 0)
		all = all.Add(e, nonce, 0)
		for _, m := range e.Outputs(nonce, rows[e.Mark.Key]) {
			outs = append(outs, exact.Entry{ID: fmt.Sprint(2000+len(outs), "-0"), Mark: m})
		}
	}
	return exact.Stage{
		Name: "p", Events: [][]exact.Entry{events}, Outputs: [][]exact.Entry{outs}, Skipped: map[string]bool{},
		Keys: []map[string]exact.Row{rows}, Parts: []map[string]exact.Row{{exact.All: all}},
	}
}

func TestJudge(t *testing.T) {
	outs := func(s *exact.Stage) []exact.Entry { return s.Outputs[0] }
	for _, tt := range []struct {
		name   string
		spoil  func(s *exact.Stage)
		orders string // in which it is wrong: p, k, n
	}{
		{"nothing", func(*exact.Stage) {}, ""},
		{"an output is missing", func(s *exact.Stage) { s.Outputs[0] = outs(s)[1:] }, "pkn"},
		{"an output comes twice", func(s *exact.Stage) { s.Outputs[0] = append(outs(s), outs(s)[len(outs(s))-1]) }, "pkn"},
		{"an output of no event", func(s *exact.Stage) { s.Events[0] = s.Events[0][:9] }, "pkn"},
		{"an output is of another execution", func(s *exact.Stage) { outs(s)[3].Mark.Nonce++ }, "pkn"},
		{"an output is of another row", func(s *exact.Stage) { outs(s)[3].Mark.Chain++ }, "pk"},
		{"an output is of another event", func(s *exact.Stage) { outs(s)[3].Mark.N++ }, "pkn"},
		{"outputs of two keys change places", func(s *exact.Stage) { outs(s)[3], outs(s)[4] = outs(s)[4], outs(s)[3] }, "p"},
		{"outputs of a key change places", func(s *exact.Stage) { outs(s)[2], outs(s)[4] = outs(s)[4], outs(s)[2] }, "pk"},
		{"an event that is skipped has an output", func(s *exact.Stage) { s.Skipped["0-1003-0"] = true }, "pkn"},
		{"a row lacks an event", func(s *exact.Stage) { s.Keys[0] = perfect(9).Keys[0] }, "pkn"},
		{"a row is missing", func(s *exact.Stage) { delete(s.Keys[0], "k1") }, "pkn"},
		{"there is another row", func(s *exact.Stage) { s.Keys[0]["k3"] = exact.Row{} }, "pkn"},
		{"a row has another order", func(s *exact.Stage) {
			row := s.Keys[0]["k1"]
			row.Chain++
			s.Keys[0]["k1"] = row
		}, "pk"},
		{"the row of the partition lacks an event", func(s *exact.Stage) { s.Parts = perfect(9).Parts }, "pkn"},
	} {
		for i, order := range "pkn" {
			s := perfect(10)
			s.Order = exact.Order(i)
			s.Keys[0] = maps.Clone(s.Keys[0])
			tt.spoil(&s)
			wrong := false
			for _, o := range tt.orders {
				wrong = wrong || o == order
			}
			if v := s.Judge(); (len(v.Faults) > 0) != wrong {
				t.Errorf("%s, order %c: %v", tt.name, order, v)
			}
		}
	}
}

// A row that has ended is gone or as it was, and the next event of its key begins anew.
func TestJudgeOfRowsThatEnd(t *testing.T) {
	at := func(ms, n int) exact.Entry {
		return exact.Entry{ID: fmt.Sprint(ms, "-0"), Mark: exact.Mark{Key: "k", N: int64(n)}}
	}
	events := []exact.Entry{at(1000, 1), at(1050, 2), at(1150, 3)}
	s := exact.Stage{Events: [][]exact.Entry{events}, TTL: 100, Outputs: [][]exact.Entry{nil}}
	all, last := exact.Row{}, exact.Row{}
	for i, e := range events {
		all = all.Add(e, uint64(i), 0)
		if last = last.Add(e, uint64(i), 1250); i == 2 {
			last = exact.Row{}.Add(e, 2, 1250)
		}
		for _, m := range e.Outputs(uint64(i), last) {
			s.Outputs[0] = append(s.Outputs[0], exact.Entry{ID: fmt.Sprint(2000+i, "-0"), Mark: m})
		}
	}
	s.Parts = []map[string]exact.Row{{exact.All: all}}
	for _, tt := range []struct {
		name  string
		rows  map[string]exact.Row
		wrong bool
	}{
		{"anew", map[string]exact.Row{"k": last}, false},
		{"none", map[string]exact.Row{}, true},
		{"as if it had not ended", map[string]exact.Row{"k": exact.Row{}.Add(events[0], 0, 0).Add(events[1], 1, 0).Add(events[2], 2, 1250)}, true},
	} {
		s.Keys = []map[string]exact.Row{tt.rows}
		if v := s.Judge(); (len(v.Faults) > 0) != tt.wrong {
			t.Errorf("%s: %v", tt.name, v)
		}
	}
	s.Keys = []map[string]exact.Row{{"k": last}}
	s.Outputs[0][len(s.Outputs[0])-1].Mark.Chain++
	if v := s.Judge(); len(v.Faults) != 1 {
		t.Errorf("an event that has found another row: %v", v)
	}
}

// The events of a stream that is trimmed are known by what was emitted for them.
func TestSources(t *testing.T) {
	want := perfect(12).Events[0]
	var outs []exact.Entry
	for i := range want {
		for _, m := range want[len(want)-1-i].Outputs(1, exact.Row{}) {
			m.Of = &want[len(want)-1-i].Mark
			outs = append(outs, exact.Entry{Mark: m})
		}
	}
	if got := exact.Sources([][]exact.Entry{outs}, 1); fmt.Sprint(got) != fmt.Sprint([][]exact.Entry{want}) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Ends are judged in order where each event has a time of its own, and by their sums else.
func TestJudgeOfEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		spoil   func(ends []exact.Entry) []exact.Entry
		batches bool // in which it is wrong, too
	}{
		{"nothing", func(ends []exact.Entry) []exact.Entry { return ends }, false},
		{"one is missing", func(ends []exact.Entry) []exact.Entry { return ends[1:] }, true},
		{"one comes twice", func(ends []exact.Entry) []exact.Entry { return append(ends, ends[0]) }, true},
		{"two change places", func(ends []exact.Entry) []exact.Entry { ends[0], ends[1] = ends[1], ends[0]; return ends }, false},
		{"one is late", func(ends []exact.Entry) []exact.Entry { ends[2].Mark.Nonce++; return ends }, false},
		{"an event is missing", func(ends []exact.Entry) []exact.Entry { ends[2].Mark.Nth--; return ends }, true},
		{"two are one", func(ends []exact.Entry) []exact.Entry {
			ends[2].Mark.N, ends[2].Mark.Nth = ends[0].Mark.N+ends[2].Mark.N, ends[0].Mark.Nth+ends[2].Mark.Nth
			return ends[1:]
		}, false},
	} {
		for _, batches := range []bool{false, true} {
			s := exact.Stage{Name: "p", Skipped: map[string]bool{}, Batches: batches, Pause: 10, Target: func(string) int { return 0 }}
			var events []exact.Entry
			for i, at := range []int{1000, 1001, 1009, 1015, 1030} { // k0 at 1000, 1009, 1030; k1 at 1001, 1015
				events = append(events, exact.Entry{ID: fmt.Sprint(at, "-0"), Mark: exact.Mark{Key: fmt.Sprint("k", i%2), N: int64(i + 1)}})
			}
			var ends []exact.Entry
			for _, end := range []struct {
				key           string
				at, sum, rows int64
			}{{"k1", 1011, 2, 1}, {"k0", 1019, 4, 2}, {"k1", 1025, 4, 1}, {"k0", 1040, 5, 1}} {
				ends = append(ends, exact.Entry{Mark: exact.EndOf("p", 0, end.key, exact.Row{Sum: end.sum, Count: end.rows}, end.at)})
			}
			s.Events, s.Outputs, s.Ends = [][]exact.Entry{events}, [][]exact.Entry{nil}, [][]exact.Entry{tt.spoil(ends)}
			s.Keys, s.Parts = []map[string]exact.Row{{}}, []map[string]exact.Row{{}}
			var faults []string
			for _, fault := range s.Judge().Faults {
				if strings.Contains(fault, "end ") {
					faults = append(faults, fault)
				}
			}
			if want := tt.name != "nothing" && (!batches || tt.batches); want != (len(faults) > 0) {
				t.Errorf("%s, batches %v: faults %q", tt.name, batches, faults)
			}
		}
	}
}
