package store

import "fmt"

// replyFields is a reply of names and values in turns. It remembers the first name
// that is missing or of another type.
type replyFields struct {
	values map[string]any
	err    error
}

func fieldsOf(reply []any) *replyFields {
	names, values := make([]any, 0, len(reply)/2), make([]any, 0, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		names, values = append(names, reply[i]), append(values, reply[i+1])
	}
	return zipped(names, values)
}

// zipped are values whose names stand beside them.
func zipped(names, values []any) *replyFields {
	f := &replyFields{values: make(map[string]any, len(names))}
	for i := range min(len(names), len(values)) {
		if name, ok := names[i].(string); ok {
			f.values[name] = values[i]
		}
	}
	return f
}

func (f *replyFields) text(name string) string {
	s, ok := f.values[name].(string)
	if !ok && f.err == nil {
		f.err = fmt.Errorf("unexpected reply: %s is %v", name, f.values[name])
	}
	return s
}

func (f *replyFields) number(name string) int64 {
	n, ok := f.values[name].(int64)
	if !ok && f.err == nil {
		f.err = fmt.Errorf("unexpected reply: %s is %v", name, f.values[name])
	}
	return n
}
