package store

import (
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
)

// Numbered logs are those of topics. Their entry IDs count the entries, so that what a reader has missed or has before it is a
// subtraction; and they have holders beside consumer groups, for readers that keep their position themselves. The scripts of other
// logs know nothing of either.

// KindTopic is the kind of streams whose logs are numbered.
const KindTopic = "topic"

var (
	numberedPlainScript = numbered("plain")
	numberedSendScript  = numbered("send")
	heldTrimScript      = script("prelude", "retention", "holders", "trim")
	heldRoomScript      = script("prelude", "retention", "holders", "room")
)

// numbered returns a script that appends entries, where these are numbered.
func numbered(name string) *redis.Script {
	return redis.NewScript(source("numbered") + strings.ReplaceAll(source(name), "call('XADD', log, '*', ", "append(log, ") + source("numbered_end"))
}

// LastID returns the key of the last ID that a numbered log gave, "<ms>-<n>".
func LastID(k keys.Keys, stream string, n int) string {
	return keys.MustKind("num").Key(k, stream, "", "", n)
}

// Holders returns the key of a numbered log's holders: a hash, holder → the last ID that it does not need, for a pin with a space
// and the ms since 1970 until when it counts. Names of holders have a colon, which those of processors do not have.
func Holders(k keys.Keys, stream string, n int) string {
	return keys.MustKind("holder").Key(k, stream, "", "", n)
}

// numbers adds what a script for numbered logs wants to the keys and arguments of the other logs' script.
func (s *sending) numbers(k keys.Keys, names []string, args []any) ([]string, []any) {
	for _, p := range s.parts {
		names = append(names, p.log, LastID(k, p.Stream, p.Partition))
	}
	return names, append(args, len(s.parts))
}
