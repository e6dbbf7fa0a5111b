package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// flatten returns the fields of an entry as alternating names and values, by name.
func flatten(values map[string]any) []string {
	flat := make([]string, 0, 2*len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		flat = append(flat, name, fmt.Sprint(values[name]))
	}
	return flat
}

// pack joins strings, each behind its length and a colon, so that any bytes survive.
func pack(flat []string) string {
	size := 0
	for _, s := range flat {
		size += len(s) + 8
	}
	var b strings.Builder
	b.Grow(size)
	for _, s := range flat {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	return b.String()
}

// unpack is the inverse of pack, as the values of an entry.
func unpack(text string) (map[string]any, error) {
	values := map[string]any{}
	for rest := text; rest != ""; {
		name, after, err := cutPacked(rest)
		if err != nil {
			return nil, err
		}
		value, after, err := cutPacked(after)
		if err != nil {
			return nil, err
		}
		values[name], rest = value, after
	}
	return values, nil
}

func cutPacked(text string) (s, rest string, err error) {
	digits, rest, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > len(rest) {
		return "", "", fmt.Errorf("stored fields are not readable %d bytes before their end", len(text))
	}
	return rest[:n], rest[n:], nil
}
