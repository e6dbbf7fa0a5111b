package worker

import "time"

const (
	firstAhead = 16 // entries that are read ahead at first
	leastAhead = 8
	// What was read ahead should be processed within a second or so.
	freshAge = 250 * time.Millisecond
	staleAge = time.Second
)

// A pace finds how many entries of a partition are worth reading ahead, from 8
// (or what may be held at most, if that is less) up to that: as many as the
// function processes in about a second. It doubles while reads bring much and it
// is processed soon, and halves when the next entry in the buffer has waited for
// long. So a fast function never waits for Redis, and of a slow one little is in
// memory, and pending, that another worker could process.
type pace struct {
	fixed bool // as many as may wait, always
	ahead int
	got   int // since ahead was looked at
}

// adapt is asked before a read. age is how long the oldest entry that waits has
// waited, 0 where none does; most is how many may wait.
func (p *pace) adapt(age time.Duration, most int) {
	switch {
	case p.fixed:
		p.ahead = most
		return
	case p.ahead == 0:
		p.ahead = firstAhead
	case age > staleAge && p.got > 0: // once for what came
		p.ahead /= 2
	case age < freshAge && 2*p.got >= p.ahead:
		p.ahead *= 2
	case 2*p.got < p.ahead:
		return // not enough to tell
	}
	p.ahead, p.got = min(max(p.ahead, leastAhead), most), 0
}
