package model

import "hash/maphash"

const chunkBits = 15

// A table numbers states in the order in which they are added. It keeps each once,
// without pointers, in pieces that are never moved.
type table[S comparable] struct {
	seed   maphash.Seed
	chunks [][]S
	n      int
	slots  []uint32 // number + 1 of a state, 0 where there is none; a power of two of them
}

func newTable[S comparable]() *table[S] {
	return &table[S]{seed: maphash.MakeSeed(), slots: make([]uint32, 1<<12)}
}

func (t *table[S]) at(i int) *S { return &t.chunks[i>>chunkBits][i&(1<<chunkBits-1)] }

// add returns the number of a state and whether it is a new one.
func (t *table[S]) add(s *S) (i int, fresh bool) {
	mask := uint64(len(t.slots) - 1)
	h := maphash.Comparable(t.seed, *s) & mask
	for ; t.slots[h] != 0; h = (h + 1) & mask {
		if i := int(t.slots[h] - 1); *t.at(i) == *s {
			return i, false
		}
	}
	if t.n&(1<<chunkBits-1) == 0 {
		t.chunks = append(t.chunks, make([]S, 0, 1<<chunkBits))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, *s)
	t.n++
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

// A list is one of numbers that is never moved, however long it gets.
type list struct {
	chunks [][]uint32
	n      int
}

func (l *list) add(v uint32) {
	if l.n&(1<<chunkBits-1) == 0 {
		l.chunks = append(l.chunks, make([]uint32, 0, 1<<chunkBits))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = append(*last, v)
	l.n++
}

func (l *list) at(i int) uint32 { return l.chunks[i>>chunkBits][i&(1<<chunkBits-1)] }
