package inspect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	tripBytes = 4 << 20  // target of a round trip
	firstTrip = 8        // entries of the first round trip: their size is unknown
	heldBytes = 16 << 20 // of entries read and not yet returned
)

// A Pace calculates how many entries to read in a round trip from the sizes of the previous ones:
// payloads may have megabytes.
type Pace struct{ room int }

// Next returns how many entries to read, at most most.
func (p *Pace) Next(most int) int {
	p.room = cmp.Or(p.room, firstTrip)
	return min(p.room, most)
}

// Came records the entries and bytes of a round trip.
func (p *Pace) Came(entries int, bytes int64) {
	p.room *= 8
	if bytes > tripBytes/2 {
		p.room = max(1, int(int64(entries)*tripBytes/bytes))
	}
	p.room = min(p.room, 1<<20)
}

// A stock counts the bytes of held entries.
type stock struct {
	held int64
	most int64 // 0: heldBytes
}

// put returns the entry, or only its ID if too much is held already.
func (s *stock) put(e redisconn.Entry) redisconn.Entry {
	n := Bytes(e.Values)
	if s.held+n > cmp.Or(s.most, heldBytes) {
		return redisconn.Entry{ID: e.ID}
	}
	s.held += n
	return e
}

// take returns an entry from put, and reads it again if it was not held.
func (s *stock) take(ctx context.Context, c *store.Client, log string, e redisconn.Entry) (redisconn.Entry, error) {
	if e.Values != nil {
		s.held -= Bytes(e.Values)
		return e, nil
	}
	again, err := c.Redis().XRangeN(ctx, log, e.ID, e.ID, 1).Result()
	if err != nil {
		return e, fmt.Errorf("read %s of %s: %w", e.ID, log, err)
	}
	if len(again) > 0 {
		e = again[0]
	}
	return e, nil
}

// Bytes returns the size of an entry's fields and values.
func Bytes(values map[string]any) (n int64) {
	for name, value := range values {
		text, _ := value.(string)
		n += int64(len(name) + len(text))
	}
	return n
}

func bytesOfAll(entries []redisconn.Entry) (n int64) {
	for _, e := range entries {
		n += Bytes(e.Values)
	}
	return n
}
