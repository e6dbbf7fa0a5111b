package retryqueue

import "github.com/runnel-go/runnel/internal/store"

// A shelf is the parked events of a partition, in their Store and, as lanes, in memory. If the
// store refuses a change, memory stays unchanged.
type shelf struct {
	*lanes
	store Store
}

func (p *shelf) write(s store.RetryState) error {
	there, err := p.store.Write(s)
	switch {
	case err != nil:
		return err
	case !there: // an operator has dropped it
		p.remove(s.ID)
	default:
		p.put(s)
	}
	return nil
}

func (p *shelf) drop(id string) error { return p.end(id, nil) }

// end removes an event. One that was processed has a state until that is stored; see Store.Done.
func (p *shelf) end(id string, waits *store.RetryState) error {
	err := p.store.Done(id, waits)
	if err == nil {
		p.take(id, waits != nil)
	}
	return err
}
