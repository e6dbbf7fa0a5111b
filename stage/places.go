package stage

import "sync"

// places bound how many visits of a stage one worker has at once, whichever the partition. Its methods
// may be called concurrently.
type places struct {
	mu      sync.Mutex
	free    int
	batch   int           // what is taken at once, at the least, where so many are asked for
	waiting []func() bool // see take, in the order in which they came
}

// take takes up to most places. Where there are none, told is called later, once, when there may be some;
// it reports whether its owner lives, and must not block.
func (p *places) take(most int, told func() bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(most, p.free)
	if n < min(most, p.batch) {
		n = 0
	}
	if p.free -= n; n == 0 {
		p.waiting = append(p.waiting, told)
	}
	return n
}

// one takes a place if there is one that nobody waits for.
func (p *places) one() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 || len(p.waiting) > 0 {
		return false
	}
	p.free--
	return true
}

// give gives places back.
func (p *places) give(n int) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	p.free += n
	n = p.free / max(p.batch, 1)
	p.mu.Unlock()
	for n > 0 {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.mu.Unlock()
			return
		}
		told := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
		if told() {
			n--
		}
	}
}
