package runnel_test

import (
	"context"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
)

// nowhere takes what an app sends and costs nothing for each record.
type nowhere struct{ out []store.Appended }

func (n *nowhere) Append(context.Context, []store.Append) []store.Appended { return n.out }

// fixed is a codec without pools, whose allocations the race detector would vary.
type fixed struct{}

func (fixed) Name() string               { return "fixed" }
func (fixed) Encode(any) ([]byte, error) { return []byte("x"), nil }
func (fixed) Decode([]byte, any) error   { return nil }

// Without hooks a call of Send allocates what it did before there were any.
func TestSendWithoutHooksAllocatesNothingForThem(t *testing.T) {
	s := runnel.NewStream(runnel.New("cost", nil), "items", keyOfItem, &runnel.StreamOptions{Partitions: 1, Codec: fixed{}})
	appview.Of(s.App()).Intercept(&nowhere{[]store.Appended{{IDs: []string{"1-0", "2-0"}}}})
	out := []runnel.Outgoing[item]{{Record: item{1}}, {Record: item{2}}}
	send := func() {
		if _, err := s.SendEvents(t.Context(), out...); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, send); n > 10 {
		t.Errorf("%v allocations for a call of two records, want 10 at most", n)
	}
}
