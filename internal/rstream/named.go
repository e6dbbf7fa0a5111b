package rstream

import "fmt"

// fields is a reply of names and values in turns. It remembers the first name
// that is missing or of another type.
type fields struct {
	values map[string]any
	err    error
}

func named(reply []any) *fields {
	f := &fields{values: map[string]any{}}
	for i := 0; i+1 < len(reply); i += 2 {
		if name, ok := reply[i].(string); ok {
			f.values[name] = reply[i+1]
		}
	}
	return f
}

func (f *fields) text(name string) string {
	s, ok := f.values[name].(string)
	if !ok && f.err == nil {
		f.err = fmt.Errorf("unexpected reply: %s is %v", name, f.values[name])
	}
	return s
}

func (f *fields) number(name string) int64 {
	n, ok := f.values[name].(int64)
	if !ok && f.err == nil {
		f.err = fmt.Errorf("unexpected reply: %s is %v", name, f.values[name])
	}
	return n
}
