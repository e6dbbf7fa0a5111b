// A record of which nothing would be sent is refused when its stream is declared.

package runnel

import (
	"strings"
	"testing"
)

type unsent struct{ key string }

func TestNewStreamRefusesARecordOfWhichNothingIsSent(t *testing.T) {
	defer func() {
		const want = "runnel: app shop: NewStream orders: msgpack: runnel.unsent has no exported field that would be sent"
		if p, _ := recover().(string); !strings.HasPrefix(p, want) {
			t.Errorf("got %q, want %q", p, want)
		}
	}()
	NewStream(New("shop", nil), "orders", func(h unsent) string { return h.key }, nil)
}
