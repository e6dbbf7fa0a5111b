package codec

import (
	"bytes"
	"reflect"
	"slices"
	"sync"
)

// sortPacked puts the entries of every map in data, which is one MessagePack value,
// in the order of their encoded keys. The encoder itself orders only maps from
// strings to strings, bools and any.
func sortPacked(data []byte) error {
	s := packScan{data: data}
	return s.sort()
}

// sort passes over one value with all that is in it.
func (s *packScan) sort() error {
	code := s.pos
	values, err := s.value()
	if err != nil {
		return err
	}
	if c := s.data[code]; c&0xf0 != 0x80 && c != 0xde && c != 0xdf {
		for range values {
			if err := s.sort(); err != nil {
				return err
			}
		}
		return nil
	}
	body := s.pos
	entries := make([]packEntry, values/2)
	for i := range entries {
		start := s.pos
		if err := s.sort(); err != nil {
			return err
		}
		key := s.pos
		if err := s.sort(); err != nil {
			return err
		}
		entries[i] = packEntry{s.data[start:key], s.data[start:s.pos]}
	}
	if slices.IsSortedFunc(entries, packEntry.compare) {
		return nil
	}
	slices.SortStableFunc(entries, packEntry.compare)
	ordered := make([]byte, 0, s.pos-body)
	for _, e := range entries {
		ordered = append(ordered, e.whole...)
	}
	copy(s.data[body:], ordered)
	return nil
}

type packEntry struct{ key, whole []byte }

func (e packEntry) compare(o packEntry) int { return bytes.Compare(e.key, o.key) }

var unordered sync.Map // reflect.Type to bool

// needsSort reports whether a record of type t may hold a map that the encoder
// writes in random order.
func needsSort(t reflect.Type) bool {
	if needs, ok := unordered.Load(t); ok {
		return needs.(bool)
	}
	needs := holdsUnordered(t, map[reflect.Type]bool{})
	unordered.Store(t, needs)
	return needs
}

func holdsUnordered(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Map:
		return t.Key() != reflect.TypeFor[string]() ||
			t.Elem() != reflect.TypeFor[string]() && t.Elem() != reflect.TypeFor[bool]()
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsUnordered(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsUnordered(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
