// Outputs wait for room in their target, and never make it longer than it may be.

package runnel_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestOutputsOfManyIterationsFitTheirTarget(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		const events, most = 2000, 100
		app := runnel.New("contract", &runnel.Options{RedisURL: url})
		in := runnel.NewStream(app, "items", func(item) string { return "x" }, &runnel.StreamOptions{Partitions: 1})
		out := runnel.NewStream(app, "out", func(item) string { return "x" }, &runnel.StreamOptions{Partitions: 1, MaxLen: most})
		runnel.Forward(in, "f", out, func(i item) item { return i }, nil)
		for i := range events {
			if err := in.Send(t.Context(), item{i}); err != nil {
				t.Fatal(err)
			}
		}
		defer running(t, app)()
		taken := 0
		redistest.Eventually(t, "all outputs have come", func() bool {
			log := "__strm:contract.out.0"
			n := int(rdb.XLen(t.Context(), log).Val())
			if n > most {
				t.Fatalf("%d entries, of at most %d", n, most)
			}
			if n > most*3/4 || taken+n == events {
				taken += int(rdb.XTrimMaxLen(t.Context(), log, 0).Val())
			}
			return taken == events
		})
	})
}
