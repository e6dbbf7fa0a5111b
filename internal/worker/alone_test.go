package worker

import (
	"context"
	"testing"
)

// A suspect waits for its turn to be alone when the lease of its partition ends.
// Other partitions of the worker do not wait for it any more.
func TestEndOfATenureEndsItsTurn(t *testing.T) {
	var own *tenure
	p := &Processor{Prefetch: 1, PrefetchBytes: 1}
	p.Consume = func(context.Context, Source) error {
		want(t, "alone beside another one", own.claim(holdsAlone), false)
		own.beginEnd()
		return nil
	}
	own = NewFed(p, nil, 0).tenure
	other := NewFed(p, nil, 0).tenure
	other.alone = own.alone
	want(t, "another one that shares", other.claim(holdsShare), true)
	x := &incarnation{executor: &executor{p: p}}
	x.consume(own, nil)
	other.letGo()
	want(t, "it shares again", other.claim(holdsShare), true)
}
