package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// aSet is a shop with orders, and a set and a topic that an extension has declared.
func aSet(t *testing.T) *shop {
	t.Helper()
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	for stream, kind := range map[string]string{"listings": "set", "news": "topic"} {
		extension.Declare(runnel.NewStream(s.app, stream, func(o order) string { return o.Customer }, nil), kind, nil)
	}
	for stream, m := range map[string]store.Meta{
		"orders": {Processors: []string{"printer"}}, "listings": {Processors: []string{"stages"}, Kind: "set", Parts: []string{"price"}}, "news": {Processors: []string{"mailer"}, Kind: "topic"},
	} {
		m.Partitions, m.Codec, m.Partitioner, m.KeyField = 2, "msgpack", "xxh64", "customer"
		if stream != "orders" {
			m.Partitions, m.KeyField = 16, ""
		}
		if _, err := s.client().EnsureMeta(t.Context(), stream, m); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestNothingIsSentToStreamsWithAKind(t *testing.T) {
	s := aSet(t)
	before := s.rdb.DBSize(t.Context()).Val()
	for stream, want := range map[string]string{
		"listings": `stream listings is a set: store entities with Set.Put, visit them with "stage visit"`, "news": "stream news is a topic: publish with ",
	} {
		for _, command := range []string{"send " + stream + " {}", "send " + stream + " {} --after 1h", "send " + stream + " {} --id x", "sendmany " + stream + " -"} {
			args := strings.Fields(command)
			run(t.Context(), s.app, "{}\n", args...).want(t, 1, "", want)
			run(t.Context(), nil, "{}\n", append(args, "--app", "shop")...).want(t, 1, "", want)
		}
	}
	s.untyped("dead", "replay", "orders/printer", "--to", "listings", "--yes").want(t, 1, "", "stream listings is a set")
	if after := s.rdb.DBSize(t.Context()).Val(); after != before {
		t.Errorf("%d keys, before %d", after, before)
	}
}

// Lists leave out internal streams, unless they are asked for. Topics are in lists.
func TestListsLeaveOutInternalStreams(t *testing.T) {
	s := aSet(t)
	for _, command := range []string{"stream ls", "processor ls", "status", "status --output wide", "status --output json", "top --every 100ms", "stream ls --output json"} {
		for _, more := range []string{"", " --all"} {
			r := s.untyped(strings.Fields(command + more)...)
			r.matches(t, "orders", "news")
			lists := regexp.MustCompile(`(?m)^listings|^stream listings: 16|"stream":\s*"listings"`).MatchString(r.out)
			if lists != (more != "") {
				t.Errorf("%s%s: %s", command, more, r.out)
			}
		}
	}
	s.untyped("status").matches(t, `(?m)^app shop .*: 2 streams, 2 processors,`)
	for _, command := range []string{"status listings", "status listings/stages", "processor ls listings", "top listings --every 100ms", "processor info listings/stages"} {
		s.untyped(strings.Fields(command)...).matches(t, "stages")
	}
	s.untyped("stream", "info", "listings").want(t, 0, "it is a set\n", "")
	r := s.untyped("check")
	if r.code != 3 || !strings.Contains(r.out, "stream listings: processor stages: no worker runs it") {
		t.Errorf("check: %+v", r)
	}
	sample := printed[inspect.Sample](s, "top", "--every", "100ms")
	if len(sample.App.Streams) != 2 || len(sample.Rates) != 2 || sample.Rates[0].Stream != sample.App.Streams[0].Stream {
		t.Errorf("%+v", sample)
	}
}

func TestStreamRmNamesWhatAnExtensionHas(t *testing.T) {
	s := aSet(t)
	s.rdb.HSet(t.Context(), "__ent:shop.listings.3", "42", "1 0 x")
	s.untyped("stream", "rm", "listings", "--yes").want(t, 0, "stream listings removed; 0 entries, 0 delayed events, 1 processor, 0 dead letters, entities: 1\n", "")
	if n := s.rdb.Exists(t.Context(), "__ent:shop.listings.3").Val(); n != 0 {
		t.Error("the entities are left")
	}
}
