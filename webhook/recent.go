package webhook

import (
	"sync"
	"time"
)

const (
	believed  = time.Second // for which a process believes what it has looked up
	mostKnown = 4096        // of one kind
)

// A recent is what was looked up a moment ago, by key. The zero value is empty. It is safe for concurrent use.
type recent[V any] struct {
	mu      sync.Mutex
	known   map[string]lookedUp[V]
	forgets int // what was looked up before the last one is not kept
}

type lookedUp[V any] struct {
	value V
	at    time.Time
}

// look returns what is known, or what find does.
func (r *recent[V]) look(key string, find func() (V, error)) (V, error) {
	began := time.Now()
	r.mu.Lock()
	known, forgets := r.known[key], r.forgets
	r.mu.Unlock()
	if began.Sub(known.at) < believed {
		return known.value, nil
	}
	value, err := find()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.forgets == forgets {
		if r.known == nil || len(r.known) >= mostKnown {
			r.known = map[string]lookedUp[V]{}
		}
		r.known[key] = lookedUp[V]{value, began}
	}
	return value, err
}

// forget forgets all, and what is being looked up.
func (r *recent[V]) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgets++
	clear(r.known)
}
