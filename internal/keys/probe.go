package keys

import "strings"

// Probes are, by what a key's name begins with, commands that every role may call, that
// change nothing, and that refuse any other type than the right one. Metadata, membership,
// rules, blocks and audit are missing: the calls that use one of these name it.
var Probes = map[string]string{
	"__strm": "XLEN", "__dead": "XLEN", "__ctrl": "XLEN",
	"__lock": "GET", "__leader": "GET", "__beat": "GET", "__id": "GET", "__dueseq": "GET",
	"__own": "HLEN", "__parked": "HLEN", "__retry": "HLEN", "__task": "HLEN",
	"__duever": "HLEN", "__duedata": "HLEN", "__due": "ZCARD",
}

// Probe returns a command that every role may call on a key, that changes nothing, and that Redis
// refuses if the key holds another type than it should; "" if there is none for its kind.
func Probe(key string) string {
	kind, _, _ := strings.Cut(key, ":")
	return Probes[kind]
}
