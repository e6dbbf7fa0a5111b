package history

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/test/exact"
)

// What an Atomic processor has left is judged with the history.
func TestOnce(t *testing.T) {
	event := exact.Entry{ID: "1000-0", Mark: exact.Mark{Key: "k", N: 1}}
	row := exact.Row{}.Add(event, 7, 0)
	outs := []exact.Entry{{ID: "2000-0", Mark: event.Outputs(7, row)[0]}}
	stage := exact.Stage{
		Name: "fold", Events: [][]exact.Entry{{event}}, Outputs: [][]exact.Entry{outs}, Skipped: map[string]bool{},
		Keys: []map[string]exact.Row{{"k": row}}, Parts: []map[string]exact.Row{{exact.All: row}},
	}
	if r := Check(nil, Options{Rest: []exact.Stage{stage}}); !r.OK || r.Once != 1 {
		t.Errorf("%v", r)
	}
	stage.Outputs[0] = append(outs, outs...)
	r := Check(nil, Options{Rest: []exact.Stage{stage}})
	if r.OK || len(r.Violations) == 0 || r.Violations[0].Class != ClassOnce || !strings.Contains(r.String(), "2 times") {
		t.Errorf("%v", r)
	}
}
