package keys

import "strings"

// Probe returns a command that every role may call on a key, that changes nothing, and that Redis
// refuses if the key holds another type than it should; "" if there is none for its kind.
func Probe(key string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(key, "__"), ":")
	kind, _ := KindOf(name)
	return kind.Probe
}
