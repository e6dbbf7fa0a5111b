package conformance_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// No ID of a delayed event is given twice, whatever Redis has forgotten: a program that kept the
// first ID must not cancel the second event.
func TestTheIDOfADelayedEventIsGivenOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := newParcelApp(t, srv.URL(), "producer", onePartition)
	at := time.Now().Add(time.Hour)
	first := a.sendAt(at, "k", 1)
	srv.Client(t).FlushAll(t.Context())
	second := a.sendAt(at, "k", 2)
	if second[0].ID <= first[0].ID {
		t.Errorf("%s is given behind %s", second[0].ID, first[0].ID)
	}
	if ok, err := a.parcels.Cancel(t.Context(), first[0].ID); ok || err != nil || waiting(t, srv, 0) != 1 {
		t.Errorf("cancelling what Redis has forgotten: %v, %v, and %d wait", ok, err, waiting(t, srv, 0))
	}
}
