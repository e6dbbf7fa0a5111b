package codec

import (
	"bytes"
	"reflect"
	"sync"
	"unicode/utf8"
)

// weights are upper bounds of the bytes that the parts of a payload take when they are decoded
// into a type, beside the bytes of the payload itself: five bytes of JSON can become a map of 400.
type weights struct {
	element int64 // of an array
	member  int64 // of an object
	object  int64 // itself
}

var weighed sync.Map // reflect.Type to weights

// weightsOf returns the weights of what a pointer to a record points to.
func weightsOf(record any) weights {
	t := reflect.TypeOf(record)
	if t == nil {
		return weights{}
	}
	if w, ok := weighed.Load(t); ok {
		return w.(weights)
	}
	var w weights
	w.add(t, map[reflect.Type]bool{})
	weighed.Store(t, w)
	return w
}

var anyType = reflect.TypeFor[any]()

// add raises the weights to what t needs.
func (w *weights) add(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		w.slice(anyType)
		w.mapping(reflect.TypeFor[string](), anyType)
	case reflect.Slice:
		w.slice(t.Elem())
		w.add(t.Elem(), seen)
	case reflect.Map:
		w.mapping(t.Key(), t.Elem())
		w.add(t.Key(), seen)
		w.add(t.Elem(), seen)
	case reflect.Pointer, reflect.Array:
		w.add(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i).Type
			// MessagePack may have a struct as an array.
			w.member = max(w.member, behind(f))
			w.element = max(w.element, behind(f))
			w.add(f, seen)
		}
	}
}

// slice is for elements that a slice holds. While it grows there are two of them.
func (w *weights) slice(elem reflect.Type) {
	w.element = max(w.element, 9*size(elem)/4+behind(elem))
}

// mapping is for a map. The smallest one with an entry has a group of 8. While a map grows it
// has two tables, and the larger one may be less than half full.
func (w *weights) mapping(key, elem reflect.Type) {
	const header, control, inline = 48, 8, 128
	slot := min(size(key), inline) + min(size(elem), inline)
	beside := behind(key) + behind(elem)
	if size(key) > inline {
		beside += size(key)
	}
	if size(elem) > inline {
		beside += size(elem)
	}
	w.member = max(w.member, 7*(slot+1)/2+beside)
	w.object = max(w.object, header+control+8*slot)
}

func size(t reflect.Type) int64 { return int64(t.Size()) }

// behind is what a value of type t points to, elements of its own aside: each pointer, and what is
// boxed in an interface, at most an empty map.
func behind(t reflect.Type) int64 {
	switch t.Kind() {
	case reflect.Interface:
		return 48
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Pointer {
			return size(t.Elem()) + behind(t.Elem())
		}
		return max(size(t.Elem()), 16)
	}
	return 0
}

// most is the most that n bytes of MessagePack can take.
func (w weights) most(n int) int64 { return int64(n) * (1 + w.element + w.member + w.object) }

// weighJSON returns an upper bound of the bytes that data takes when it is decoded, if it is
// valid JSON.
func weighJSON(data []byte, record any) int64 {
	n, w := int64(len(data)), weightsOf(record)
	if !utf8.Valid(data) {
		n *= 9 // a byte becomes three, in buffers that are doubled
	}
	if w == (weights{}) {
		return n
	}
	var commas, members, objects, arrays int64
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += stringEnd(data[i+1:])
		case ',':
			commas++
		case ':':
			members++
		case '{':
			objects++
		case '[':
			arrays++
		}
	}
	// A comma is between members or between elements.
	elements := commas - max(members-objects, 0) + arrays
	return n + elements*w.element + members*w.member + objects*w.object
}

// stringEnd returns how far the closing quote of a string is behind its opening one.
func stringEnd(data []byte) int {
	for at := 0; ; {
		quote := bytes.IndexByte(data[at:], '"')
		if quote < 0 {
			return len(data)
		}
		at += quote
		slashes := 0
		for slashes < at && data[at-1-slashes] == '\\' {
			slashes++
		}
		if at++; slashes%2 == 0 {
			return at
		}
	}
}
