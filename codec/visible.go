package codec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// jsonCoding are the interfaces of types that write their JSON themselves.
var jsonCoding = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// checkVisible refuses structs whose fields would all be left out: each record would arrive as
// a zero value. struct{} is fine, for events that are only a key, and so is a struct with no
// field but "_". own are the interfaces of types that write themselves; tags are the tags that
// may name a field, the first one present wins.
func checkVisible(codec string, record reflect.Type, own []reflect.Type, tags ...string) error {
	t, seen := record, map[reflect.Type]bool{}
	for k := t.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Array || k == reflect.Map; k = t.Kind() {
		if seen[t] || writesItself(t, own) { // seen: such as type Tree map[string]Tree
			return nil
		}
		seen[t] = true
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !anyNamed(t) || anyVisible(t, own, tags, seen) {
		return nil
	}
	return fmt.Errorf("%s: %s has no exported field that would be sent: begin the names of its fields with a capital letter, and give them tags such as `json:\"customer\"`", codec, t)
}

// anyNamed reports whether a struct has a field that can hold something.
func anyNamed(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Name != "_" {
			return true
		}
	}
	return false
}

// anyVisible reports whether something of a struct is sent.
func anyVisible(t reflect.Type, own []reflect.Type, tags []string, seen map[reflect.Type]bool) bool {
	if writesItself(t, own) {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		switch inner := f.Type; {
		case tagOf(f, tags) == "-":
		case promotes(f):
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if anyVisible(inner, own, tags, seen) {
				return true
			}
		case f.IsExported():
			return true
		}
	}
	return false
}

func tagOf(f reflect.StructField, tags []string) string {
	for _, name := range tags {
		if tag := f.Tag.Get(name); tag != "" {
			return tag
		}
	}
	return ""
}

func writesItself(t reflect.Type, own []reflect.Type) bool {
	return slices.ContainsFunc(own, func(as reflect.Type) bool { return t.Implements(as) || reflect.PointerTo(t).Implements(as) })
}
