package prefetch

import "time"

const (
	firstAhead = 16 // entries that are read ahead at first
	leastAhead = 8
	// Entries read ahead should be processed within a second or so.
	freshAge = 250 * time.Millisecond
	staleAge = time.Second
)

// A window adapts the number of entries to read ahead: as many as the function processes in about a
// second, at least 8. Like TCP's congestion window, it doubles while reads bring many entries that
// are processed soon, and halves when the oldest entry has waited long. So a fast function never
// waits for Redis, and a slow one keeps few entries from other workers.
type window struct {
	fixed bool // as many as may wait, always
	ahead int
	got   int // since ahead was looked at
}

// adapt is called before a read. age is how long the oldest entry has waited, 0 if none
// waits; most is how many may wait.
func (p *window) adapt(age time.Duration, most int) {
	switch {
	case p.fixed:
		p.ahead = most
		return
	case p.ahead == 0:
		p.ahead = firstAhead
	case age > staleAge && p.got > 0: // once per arrival
		p.ahead /= 2
	case age < freshAge && 2*p.got >= p.ahead:
		p.ahead *= 2
	case 2*p.got < p.ahead:
		return // too few to decide
	}
	p.ahead, p.got = min(max(p.ahead, leastAhead), most), 0
}
