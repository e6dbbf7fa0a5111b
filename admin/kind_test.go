package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

// aSet stores the metadata of a set with a stage, and two entities.
func aSet(t *testing.T, c *store.Client) {
	t.Helper()
	_, err := c.EnsureMeta(t.Context(), "listings", store.Meta{Partitions: 4, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: []string{"stages"}, Kind: "set", Parts: []string{"price"}})
	must(t, err)
	ent, _ := keys.KindOf("ent")
	must(t, c.Redis().HSet(t.Context(), ent.Key(c.Keys(), "listings", "", "", 3), "42", "1 0 x", "43", "2 0 y").Err())
	visit, _ := keys.KindOf("visit")
	must(t, c.Redis().ZAdd(t.Context(), visit.Key(c.Keys(), "listings", "price", "", 0), redis.Z{Score: 1, Member: "42"}).Err())
}

func TestASetIsRemovedWithItsEntities(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		aSet(t, c)
		want := []Extent{{"entities", 2}, {"visits", 1}}
		for _, opts := range []*RemoveOptions{{DryRun: true}, nil} {
			gone, err := a.RemoveStream(t.Context(), "listings", opts)
			must(t, err)
			if !slices.Equal(gone.Extents, want) {
				t.Errorf("removed %+v, want %+v", gone, want)
			}
		}
		for _, key := range c.Redis().Keys(t.Context(), "*listings*").Val() {
			if !strings.HasPrefix(key, "__own:") { // the note of the removal
				t.Errorf("%s is left", key)
			}
		}
	})
}

func TestInternalStreamsAreNotInTheStatus(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		aSet(t, c)
		stream(t, c, "orders", "printer")
		s, err := a.Status(t.Context())
		must(t, err)
		if len(s.Processors) != 1 || s.Processors[0].Stream != "orders" || !strings.Contains(strings.Join(s.Findings, "\n"), "stream listings: processor stages: no worker runs it") {
			t.Errorf("%+v", s)
		}
		all, err := a.Streams(t.Context())
		must(t, err)
		if len(all) != 2 || all[0].Kind != "set" || all[1].Kind != "" {
			t.Errorf("%+v", all)
		}
	})
}

// Dead letters become events again in ordinary streams alone.
func TestNothingIsReplayedToStreamsWithAKind(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		ctx := t.Context()
		aSet(t, c)
		stream(t, c, "orders", "printer")
		_, err := c.EnsureMeta(ctx, "news", store.Meta{Partitions: 4, Codec: "json", Partitioner: "xxh64", Processors: []string{"mailer"}, Kind: "topic"})
		must(t, err)
		for from, want := range map[[2]string]string{
			{"orders", "printer"}: "stream listings is a set: store entities with Set.Put",
			{"news", "mailer"}:    "stream news is a topic: publish with ",
		} {
			for _, dry := range []bool{true, false} {
				opts := &ReplayOptions{DryRun: dry}
				if from[0] == "orders" {
					opts.To = "listings"
				}
				_, err := a.DeadLetters(from[0], from[1]).Replay(ctx, nil, opts)
				if !errors.As(err, new(*store.SendKindError)) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v: got %v, want %q", from, err, want)
				}
			}
		}
	})
}
