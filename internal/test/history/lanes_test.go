package history

import (
	"testing"
)

func dead(events ...int) Record {
	r := iterate(Dead, "", 0, events)
	r.Executor = ""
	return r
}

// Of key a are 2, 4 and 6, of key b 1, 3 and 5.
func TestLanes(t *testing.T) {
	all := []Record{sent(1), sent(2), sent(3), sent(4)}
	run := func(n int) []Record { return []Record{begin("w", 1, n), end("w", 1, n)} }
	fails := func(n int) []Record { return []Record{begin("w", 1, n), failed("w", 1, n)} }
	tests := []struct {
		name  string
		lanes Lanes
		parts []any
		want  Class
	}{
		{"tried again at once", LanePartition, []any{fails(1), run(1), run(2), run(3), run(4)}, ""},
		{"passed", LanePartition, []any{fails(1), run(2), run(1), run(3), run(4)}, ClassOrder},
		{"passed by another key", LaneKey, []any{fails(1), run(2), run(1), run(3), run(4)}, ""},
		{"passed by its own key", LaneKey, []any{fails(1), run(2), run(3), run(1), run(4)}, ClassOrder},
		{"only begun by its own key", LaneKey, []any{fails(1), run(2), fails(3), run(1), run(3), run(4)}, ClassOrder},
		{"passed by anyone", LaneEvent, []any{fails(1), run(2), run(3), run(4), run(1)}, ""},
		{"twice", LaneEvent, []any{run(1), run(2), run(3), run(4), run(1)}, ClassOwner},
		{"never again", LaneKey, []any{fails(1), run(2), run(4)}, ClassLoss},
		{"a dead letter", LaneKey, []any{fails(1), run(2), run(3), run(4), dead(1)}, ""},
		{"two dead letters", LaneKey, []any{fails(1), run(2), run(3), run(4), dead(1), dead(1)}, ClassRepeat},
		{"both", LaneKey, []any{run(1), run(2), run(3), run(4), dead(1)}, ClassRepeat},
		{"both, after a kill", LaneKey, []any{run(1), fault("w", Kill), dead(1), []Record{begin("v", 2, 2), end("v", 2, 2)}, []Record{begin("v", 2, 3), end("v", 2, 3)}, []Record{begin("v", 2, 4), end("v", 2, 4)}}, ""},
		{"behind one that a crash left", LaneKey, []any{begin("w", 1, 1), fault("w", Kill), begin("v", 2, 3), end("v", 2, 3)}, ClassOrder},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Check(history(append([]any{all}, tt.parts...)...), Options{Processors: []string{"printer"}, Lanes: tt.lanes})
			found := tt.want == "" && r.OK
			for _, v := range r.Violations {
				found = found || v.Class == tt.want
			}
			if !found {
				t.Errorf("want %q, got %s", tt.want, r)
			}
		})
	}
}
