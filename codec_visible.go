package runnel

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// jsonCoding are the interfaces of types that write their JSON themselves.
var jsonCoding = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// checkVisible refuses records of structs that have fields, of which none would be sent: each
// record would come as a zero value. struct{} is fine, for events that are only a key. own are the
// interfaces of types that write themselves, tags those that name a field, the first that is
// there.
func checkVisible(codec string, record reflect.Type, own []reflect.Type, tags ...string) error {
	t := record
	for k := t.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Array || k == reflect.Map; k = t.Kind() {
		if writesItself(t, own) {
			return nil
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 || anyVisible(t, own, tags, map[reflect.Type]bool{}) {
		return nil
	}
	return fmt.Errorf("%s: %s has no exported field that would be sent: begin the names of its fields with a capital letter, and give them tags such as `json:\"customer\"`", codec, t)
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
	for _, as := range own {
		if t.Implements(as) || reflect.PointerTo(t).Implements(as) {
			return true
		}
	}
	return false
}
