package model

import "hash/maphash"

const chunkBits = 15

// chunks are values that are never moved, however many there are.
type chunks[T any] struct {
	all [][]T
	n   int
}

func (c *chunks[T]) at(i int) *T { return &c.all[i>>chunkBits][i&(1<<chunkBits-1)] }

func (c *chunks[T]) add(v T) {
	if c.n&(1<<chunkBits-1) == 0 {
		c.all = append(c.all, make([]T, 0, 1<<chunkBits))
	}
	last := &c.all[len(c.all)-1]
	*last = append(*last, v)
	c.n++
}

// A table numbers states in the order in which they are added. It keeps each once,
// without pointers, in pieces that are never moved.
type table[S comparable] struct {
	chunks[S]
	seed  maphash.Seed
	slots []uint32 // number + 1 of a state, 0 where there is none; a power of two of them
}

func newTable[S comparable]() *table[S] {
	return &table[S]{seed: maphash.MakeSeed(), slots: make([]uint32, 1<<12)}
}

// add returns the number of a state and whether it is a new one.
func (t *table[S]) add(s *S) (i int, fresh bool) {
	mask := uint64(len(t.slots) - 1)
	h := maphash.Comparable(t.seed, *s) & mask
	for ; t.slots[h] != 0; h = (h + 1) & mask {
		if i := int(t.slots[h] - 1); *t.at(i) == *s {
			return i, false
		}
	}
	t.chunks.add(*s)
	t.slots[h] = uint32(t.n)
	if 3*t.n > 2*len(t.slots) {
		t.grow()
	}
	return t.n - 1, true
}

func (t *table[S]) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for i := range t.n {
		h := maphash.Comparable(t.seed, *t.at(i)) & mask
		for t.slots[h] != 0 {
			h = (h + 1) & mask
		}
		t.slots[h] = uint32(i + 1)
	}
}
