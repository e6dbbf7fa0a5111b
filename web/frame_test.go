package web

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

// Like status, a frame has every reason why a partition is not processed.
func TestAFrameHasWhatKeepsAPartition(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := inspect.ProcessorState{Stream: "orders", Processor: "printer", MembersErr: "key __memb holds a string", Partitions: []inspect.PartitionState{
		{NotReading: &at}, {Partition: 1, Halt: &inspect.QuarantineState{Reason: "no paper", Event: "1/5-0", Worker: "web-1", At: at}},
	}}
	p.Totals = inspect.Sum(p.Partitions)
	r := inspect.ProcessorRates{Partitions: make([]*float64, 2)}
	got, err := json.Marshal([]any{shownOf(&p, &r), detailOf(&p, &r).Notes})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"not_reading":1`, `"members_err":"key __memb holds a string"`, `"halted":1`,
		`{"0":{"not_reading":"2026-01-02T03:04:05Z"},"1":{"halt":{"reason":"no paper","event":"1/5-0","worker":"web-1","at":"2026-01-02T03:04:05Z"}}}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// A frame tells how many outputs wait in outboxes, and has nothing of these where none do.
func TestAFrameHasWhatWaitsInOutboxes(t *testing.T) {
	p := inspect.ProcessorState{Stream: "orders", Processor: "printer", Partitions: make([]inspect.PartitionState, 2)}
	r := inspect.ProcessorRates{Partitions: make([]*float64, 2)}
	told := func() string {
		got, err := json.Marshal([]any{shownOf(&p, &r), detailOf(&p, &r)})
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	if none := told(); strings.Contains(none, "outputs") || strings.Contains(none, "outboxes") {
		t.Errorf("without any: %s", none)
	}
	p.Outboxes, p.Totals.Outputs = map[int]int64{1: 3}, 3
	if some := told(); !strings.Contains(some, `"outputs":3`) || !strings.Contains(some, `"outboxes":{"1":3}`) {
		t.Errorf("with some: %s", some)
	}
}
