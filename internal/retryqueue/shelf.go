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

func (p *shelf) drop(id string) error { return p.end(id, false) }

// end removes an event, which was processed if done is set.
func (p *shelf) end(id string, done bool) error {
	err := p.store.Done(id)
	if err == nil {
		p.take(id, done)
	}
	return err
}
