package rebalance

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzParse reads arbitrary bytes as a membership. An accepted one is usable, and survives a round
// trip.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `{"v":2}`, `{"iqzhn8WjQjSLPZZU3iBIAA": {"joined_at": "2026-11-23T02:48:55.296746", "partitions": [0, 1]}}`, `{"v":1,"generation":3,"partitions":2,"executors":{"a":{"worker":"w","joined_at":1767225600123,"expiry_ms":10000,"partitions":[1,0]}}}`,
		`{"v":1,"partitions":4,"executors":{},"pins":{"3":"w"},"cordons":{"w":1767225600123}}`,
		`{"v":1,"partitions":1,"executors":{"a":{"joined_at":9223372036854775807,"expiry_ms":1,"partitions":[]}}}`,
	} {
		f.Add([]byte(text))
	}
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Parse(data)
		var version *versionError
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.As(err, &version) {
				t.Fatalf("an error of no known kind: %v", err)
			}
			return
		}
		first := g.Encode()
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second := again.Encode(); string(first) != string(second) {
			t.Fatalf("%s\nbecame %s", first, second)
		}
		for id, e := range g.Executors {
			if _, err := json.Marshal(e.JoinedAt.UTC()); err != nil {
				t.Fatalf("executor %s: %v", id, err)
			}
		}
		left := g.Leave("salt", g.IDs()...)
		if len(left.Executors) != 0 {
			t.Fatalf("%d executors are left", len(left.Executors))
		}
	})
}
