// A former name of a variable holds where the new one is not set.

package runnel

import (
	"strings"
	"testing"
	"time"
)

func environmentOf(variables map[string]string) *environment {
	return &environment{lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}
}

// A variable's former name holds where the new one is not set, and errors name the one that is.
func TestFormerNamesOfVariablesHold(t *testing.T) {
	former := map[string]string{"RUNNEL_LOCK_EXPIRY": "7s", "RUNNEL_SIZE": "500", "RUNNEL_ID_WINDOW": "2m", "RUNNEL_WORKER": "mill"}
	settled := func(variables map[string]string) (o Options, err error) {
		e := environmentOf(variables)
		e.app(&o)
		o.Stream, o.Processor = e.stream(StreamOptions{}, StreamOptions{}), e.processor(ProcessorOptions{}, ProcessorOptions{})
		return o, e.err()
	}
	o, err := settled(former)
	if err != nil || o.Processor.Lease != 7*time.Second || o.Stream.MaxLen != 500 || o.Stream.DedupWindow != 2*time.Minute || o.WorkerName != "mill" {
		t.Errorf("%+v, %v", o, err)
	}
	if len(former) != len(formerly) {
		t.Errorf("%d former names, %d are tried", len(formerly), len(former))
	}
	former["RUNNEL_LEASE"] = "9s"
	if o, _ := settled(former); o.Processor.Lease != 9*time.Second {
		t.Errorf("the new name is set, and the lease is %v", o.Processor.Lease)
	}
	if _, err := settled(map[string]string{"RUNNEL_LOCK_EXPIRY": "soon"}); err == nil || !strings.Contains(err.Error(), "RUNNEL_LOCK_EXPIRY") {
		t.Errorf("got %v", err)
	}
}
