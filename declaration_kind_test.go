// Streams of extensions have a kind, and take nothing from Send.

package runnel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/servers"
)

// A stream of an extension refuses every send before it writes anything. Run stores its kind, and
// the parts that there are then.
func TestDeclaredStreams(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer rdb.Close()
		hook := func(context.Context, *runnel.Sending) func([]runnel.Sent, error) { return nil }
		for _, hooks := range [][]runnel.SendHook{nil, {hook}} {
			app := runnel.New("contract", &runnel.Options{RedisURL: "redis://" + addr, SendHooks: hooks})
			defer app.Close()
			s, parts := runnel.NewStream(app, "listings", keyOfItem, nil), []string{"price"}
			extension.Declare(s, "set", func() []string { return parts })
			s.Process("stages", ignoreAll, nil)
			parts = append(parts, "close")
			refusesAllSends(t, s)
			if n := rdb.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("%d keys were written", n)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- app.Run(ctx) }()
			redistest.Eventually(t, "the worker is ready", func() bool { return app.Ready() == nil })
			refusesAllSends(t, s)
			wantPanic(t, "before Run", func() { extension.Declare(s, "set", nil) })
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			stored := rdb.Get(t.Context(), "__meta:contract.listings").Val()
			if !strings.HasPrefix(stored, `{"v":2,`) || !strings.HasSuffix(stored, `"processors":["stages"],"kind":"set","parts":["close","price"]}`) {
				t.Errorf("stored %s", stored)
			}
			other := runnel.New("contract", &runnel.Options{RedisURL: "redis://" + addr})
			defer other.Close()
			err := runnel.NewStream(other, "listings", keyOfItem, nil).Send(t.Context(), item{1})
			if err == nil || !strings.Contains(err.Error(), "stream listings is a set, and for this process it is an ordinary stream") {
				t.Errorf("sent by an app that knows no set: %v", err)
			}
			rdb.FlushAll(t.Context())
		}
	})
}

func refusesAllSends(t *testing.T, s *runnel.Stream[item]) {
	t.Helper()
	ctx := t.Context()
	_, at := s.SendAt(ctx, time.Now().Add(time.Hour), item{1})
	_, after := s.SendAfter(ctx, time.Hour, item{1})
	_, events := s.SendEvents(ctx, runnel.Outgoing[item]{Record: item{1}, DedupID: "x"})
	for _, err := range []error{s.Send(ctx, item{1}), at, after, events} {
		if !errors.As(err, new(*store.SendKindError)) || err.Error() != `stream listings is a set: store entities with Set.Put, visit them with "stage visit"` {
			t.Errorf("got %v", err)
		}
	}
}

func TestDeclareTakesStreamsAlone(t *testing.T) {
	app := runnel.New("contract", nil)
	for _, other := range []any{nil, app, "listings"} {
		wantPanic(t, "is no *runnel.Stream", func() { extension.Declare(other, "set", nil) })
	}
}
