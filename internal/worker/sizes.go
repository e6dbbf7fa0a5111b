package worker

import (
	"sync"
	"time"
)

const (
	// prefetchesPerRead is how much one read should bring at most, as a multiple of what
	// is read ahead of one partition.
	prefetchesPerRead = 4
	// unknownSize is what an entry is taken to measure where none was seen lately.
	unknownSize = 1 << 20
	// sizesLast is how long the largest entry counts, at least, and at most twice as long.
	sizesLast = 30 * time.Second
)

// Sizes are those of the entries that were read lately. They tell how many one read may
// ask for, since Redis knows no bound in bytes. Its methods may be called concurrently.
type sizes struct {
	bytes int64 // that one read may bring

	mu           sync.Mutex
	began        int64 // of the present period, by mono
	now, earlier int64 // the largest of this period and of the one before
}

// seen notes the largest of some entries, 0 for none.
func (s *sizes) seen(largest, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	s.now = max(s.now, largest)
}

// largest is what the next entries are taken to measure.
func (s *sizes) largest(now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	if size := max(s.now, s.earlier); size > 0 {
		return size
	}
	return unknownSize
}

func (s *sizes) turn(now int64) {
	switch age := time.Duration(now - s.began); {
	case age >= 2*sizesLast:
		s.began, s.now, s.earlier = now, 0, 0
	case age >= sizesLast:
		s.began, s.now, s.earlier = now, 0, s.now
	}
}

// perRead is of how many partitions, of n, one read may bring entries of that size, and
// how many of each, of those asked for.
func (s *sizes) perRead(size int64, asked, n int) (count, partitions int) {
	most := int(max(1, min(s.bytes/size, 1<<30)))
	if n > most {
		return 1, most
	}
	return max(1, min(perRead(asked, n), most/max(n, 1))), n
}
