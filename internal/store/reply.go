package store

import "fmt"

// replyFields is a reply of alternating names and values, and the first name missing or mistyped.
type replyFields struct {
	values map[string]any
	err    error
}

// scan stores the texts and numbers of a reply in to, and fails if the length or a type differs.
func scan(reply []any, to ...any) error {
	ok := len(reply) == len(to)
	for i := 0; ok && i < len(to); i++ {
		switch to := to[i].(type) {
		case *string:
			*to, ok = reply[i].(string)
		case *int64:
			*to, ok = reply[i].(int64)
		}
	}
	if !ok {
		return fmt.Errorf("unexpected reply %v", reply)
	}
	return nil
}

// appendTexts appends texts to the arguments of a command or a script.
func appendTexts(args []any, texts []string) []any {
	for _, text := range texts {
		args = append(args, text)
	}
	return args
}

// textOf returns a field of an entry, "" if it has none of that name.
func textOf(values map[string]any, name string) string {
	text, _ := values[name].(string)
	return text
}

func fieldsOf(reply []any) *replyFields {
	names, values := make([]any, 0, len(reply)/2), make([]any, 0, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		names, values = append(names, reply[i]), append(values, reply[i+1])
	}
	return zipped(names, values)
}

// zipped pairs values with the names in the same places.
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
