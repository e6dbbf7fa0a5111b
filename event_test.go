// An event carries what was said when it was sent, knows its place, and tells one owner
// from another.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/runneltest"
)

// What a sender says about a record arrives with its event.
func TestAnEventCarriesWhatWasSaidWhenItWasSent(t *testing.T) {
	type seen struct {
		event   *runnel.Event
		headers map[string]string
	}
	got := make(chan seen, 10)
	fn := runnel.Each(func(_ context.Context, e *runnel.Event, _ item) error { got <- seen{e, e.Headers()}; return nil })
	cluster(t, 4, fn, nil, func(c *runneltest.Cluster, _ func(...int)) {
		ready(c, "a")
		app := runnel.New("contract", c.Options("other sender"))
		defer app.Close()
		s := runnel.NewStream(app, "items", func(i item) string { return fmt.Sprint(i.N) }, &runnel.StreamOptions{Partitions: 4})
		headers := map[string]string{"trace": "x", "": "empty", "__id": "mine"}
		for _, out := range []runnel.Outgoing[item]{{Record: item{1}}, {Record: item{2}, Key: "other", Headers: headers}} {
			now := time.Now()
			sent, err := s.SendEvents(c.Context(), out)
			if err != nil {
				t.Fatal(err)
			}
			g := <-got
			e := g.event
			key := out.Key
			if key == "" {
				key = "1"
			}
			if e.Key() != key || sent[0].Partition != runnel.XXHash.Func(key, 4) {
				t.Errorf("key %q, partition %d; want the key %q", e.Key(), sent[0].Partition, key)
			}
			if e.Stream != "items" || e.Partition != sent[0].Partition || e.ID != sent[0].ID || e.Attempt != 1 || e.Redelivered || e.Epoch == 0 {
				t.Errorf("event %+v, sent %+v", e, sent[0])
			}
			if !maps.Equal(g.headers, out.Headers) {
				t.Errorf("headers %q, want %q", g.headers, out.Headers)
			}
			if d := e.Appended().Sub(now); d < -time.Millisecond || d > time.Second || !e.Enqueued().Equal(e.Appended()) {
				t.Errorf("appended %v, enqueued %v; sent at %v", e.Appended(), e.Enqueued(), now)
			}
			for name := range e.Fields() {
				if strings.HasPrefix(name, "__") {
					t.Errorf("the framework's field %q is shown as the user's", name)
				}
			}
		}
	})
}

// An event that an earlier owner may have begun is marked; the epoch rises with
// every ownership; the number of the attempt begins anew.
func TestEpochAndRedeliveredTellOwnersApart(t *testing.T) {
	var n notes
	epochs := make(chan int64, 100)
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		epochs <- e.Epoch
		w := runneltest.WorkerOf(ctx)
		n.add(fmt.Sprint(w.Name(), " ", i.N, " attempt ", e.Attempt, " redelivered ", e.Redelivered))
		if w.Name() == "a" && i.N == 2 {
			<-ctx.Done()
			return w.Gate()
		}
		return nil
	})
	cluster(t, 1, fn, nil, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1, 2)
		c.Wait(func() bool { return len(n.all()) == 2 })
		c.Sleep(time.Second) // the first one is acked
		a.Kill()
		b := ready(c, "b")
		c.Wait(func() bool { return len(n.all()) == 3 })
		send(3)
		c.Wait(func() bool { return len(n.all()) == 4 })
		c.Sleep(time.Second)
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
		ready(c, "c")
		send(4)
		c.Wait(func() bool { return len(n.all()) == 5 })
	})
	want := []string{
		"a 1 attempt 1 redelivered false", "a 2 attempt 1 redelivered false",
		"b 2 attempt 1 redelivered true", "b 3 attempt 1 redelivered false",
		"c 4 attempt 1 redelivered false",
	}
	if got := n.all(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	close(epochs)
	var got []int64
	for e := range epochs {
		got = append(got, e)
	}
	if len(got) != 5 || got[0] != got[1] || got[1] >= got[2] || got[2] != got[3] || got[3] >= got[4] {
		t.Errorf("epochs %v, want them to rise with each owner", got)
	}
}

// Every codec but Fields reads a payload field named json, too.
func TestEveryCodecButFieldsReadsJSON(t *testing.T) {
	entry := map[string]string{"json": `{"n":7}`}
	process := func(codec codec.Codec, entry map[string]string) ([]int, error) {
		var seen []int
		s := runnel.NewStream(runnel.New("contract", nil), "items", keyOfItem, &runnel.StreamOptions{Codec: codec})
		s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			seen = append(seen, i.N)
			return nil
		}), nil)
		got := runneltest.Events(t, s, "p").Raw(entry).Run()
		return seen, got.Err
	}
	for _, codec := range []codec.Codec{
		codec.MsgPack, codec.JSON, codec.Gzip(codec.MsgPack), codec.Gzip(codec.JSON), codec.Zstd(codec.MsgPack), codec.LZ4(codec.JSON), notingCodec{codec.MsgPack, new(notes)},
	} {
		seen, err := process(codec, entry)
		if err != nil || !slices.Equal(seen, []int{7}) {
			t.Errorf("%s: saw %v, %v", codec.Name(), seen, err)
		}
		var bad *runnel.DecodeError
		if seen, err := process(codec, map[string]string{"json": `{"n":`}); !errors.As(err, &bad) || seen != nil {
			t.Errorf("%s: saw %v of half a value, %v", codec.Name(), seen, err)
		}
	}
	// To Fields it is an attribute like any other, which item does not have.
	if seen, err := process(codec.Fields, entry); err != nil || !slices.Equal(seen, []int{0}) {
		t.Errorf("fields: saw %v, %v", seen, err)
	}
	// The payload field goes first.
	data, err := codec.MsgPack.Encode(item{8})
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := process(codec.MsgPack, map[string]string{"json": `{"n":7}`, "data": string(data)}); err != nil || !slices.Equal(seen, []int{8}) {
		t.Errorf("both: saw %v, %v", seen, err)
	}
}

func TestEventsKnowTheirPlace(t *testing.T) {
	s := declareItems(func(ctx context.Context, ev *runnel.Events[item]) error {
		if ev.Partition() != 5 || ev.Context() != ctx {
			t.Errorf("before the loop: partition %d, the function's own context %v", ev.Partition(), ev.Context() == ctx)
		}
		for e := range ev.Raw() {
			if e.Stream != "items" || e.Partition != 5 || e.Epoch != 9 || e.Attempt != 1 || e.Key() != "k" {
				t.Errorf("event %+v", e)
			}
		}
		return nil
	}, nil)
	runneltest.Events(t, s, "p").Partition(5).Epoch(9).Records(items(1)...).Run()
}
