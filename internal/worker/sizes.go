package worker

import (
	"sync"
	"time"
)

const (
	// A read brings at most so many bytes, or as a multiple of what is read ahead for one partition. The server
	// takes five times as long for a byte of a reply of 32 MiB, and for two of 4 MiB at once it takes memory from the
	// system over and over.
	bytesPerRead      = 1 << 20
	prefetchesPerRead = 4
	// suddenSize is an entry size to expect although all entries before were smaller, and
	// suddenPrefetches the multiple of a read if all of its entries have it.
	suddenSize       = 256 << 10
	suddenPrefetches = 16
	// leastPerRead is the least COUNT per partition, however many partitions there are.
	leastPerRead = 16
	// leastOfMore is the same for partitions that have more: the entries of a read are acked by one
	// command for each partition.
	leastOfMore = 512
	// unknownSize is the least size assumed for an entry where none was seen lately.
	unknownSize = 512 << 10
	// sizesLast is how long the largest entry counts, at least, and at most twice as long. Then
	// half of it counts for as long, then a quarter, and so on.
	sizesLast = 30 * time.Second
)

// sizes tracks the sizes of recent entries, which bound the entries of a read, since Redis knows no
// bound in bytes. Its methods may be called concurrently.
type sizes struct {
	prefetch int64 // bytes that are read ahead of a partition

	mu         sync.Mutex
	began      int64 // of the present period, by monotime
	now, ended int64 // the largest of this period and of the one before
	faded      int64 // what still counts of those before
}

// seen notes the largest of some entries, 0 for none.
func (s *sizes) seen(largest, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	s.now = max(s.now, largest)
}

// largest returns the size to assume for the next entries.
func (s *sizes) largest(now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	if lately := max(s.now, s.ended); lately > 0 {
		return max(lately, s.faded)
	}
	return max(unknownSize, s.faded)
}

// turn begins a period where one is over; mu is held.
func (s *sizes) turn(now int64) {
	over := (now - s.began) / int64(sizesLast)
	if over == 0 {
		return
	}
	for range min(over, 64) {
		s.faded, s.ended, s.now = max(s.faded, s.ended)/2, s.now, 0
	}
	s.began = now
}

// bytes bounds one read.
func (s *sizes) bytes() int64 { return min(prefetchesPerRead*s.prefetch, bytesPerRead) }

// perRead returns how many of n partitions one read may name, and how many entries of each, for
// asked wanted entries of that size.
func (s *sizes) perRead(size int64, asked, n int) (count, partitions int) {
	most := int(max(1, s.bytes()/size))
	if n > most {
		return 1, most
	}
	n = max(n, 1)
	sudden := max(leastPerRead, int(suddenPrefetches*s.prefetch/suddenSize)/n)
	return max(1, min(asked, sudden, most/n)), n
}

func (s *sizes) perReadOfMore(size int64, asked, n int) (count, partitions int) {
	sudden := max(1, int(suddenPrefetches*s.prefetch/suddenSize))
	most := int(max(1, min(s.bytes()/size, int64(sudden))))
	count = max(1, min(asked, most, max(leastOfMore, most/n)))
	return count, max(1, most/count)
}
