package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/python"
)

func TestSendPrintsPartitionAndID(t *testing.T) {
	s := newShop(t, nil)
	want := runnel.XXHash.Func("ada", 16)
	for _, send := range []func(...string) result{s.run, s.untyped} {
		r := send("send", "orders", `{"customer":"ada","amount":1}`)
		partition, id, ok := entryid.ParseEventID(strings.TrimSpace(strings.TrimPrefix(r.out, "orders ")))
		if !ok || partition != want {
			t.Errorf("%q, want partition %d", r.out, want)
		}
		r.want(t, 0, id, "")
		entries := s.entries()[fmt.Sprint("__strm:shop.orders.", want)]
		if len(entries) == 0 || entries[len(entries)-1].ID != id {
			t.Errorf("%s is not the last of %v", id, entries)
		}
	}
}

func TestSendPrintsJSON(t *testing.T) {
	s := newShop(t, nil)
	got := parse[sentRecord](t, s.run("--output", "json", "send", "orders", `{"customer":"ada"}`))
	if got.Stream != "orders" || got.ID == "" {
		t.Errorf("%+v", got)
	}
	run(t.Context(), s.app, "{\"customer\":\"ada\"}\n", "send", "orders", "-").want(t, 0, "orders ", "")
}

func TestSendWithAKey(t *testing.T) {
	s := newShop(t, nil)
	want := fmt.Sprintf("orders %d/", runnel.XXHash.Func("eve", 16))
	s.run("send", "orders", `{"customer":"ada"}`, "--key", "eve").want(t, 0, want, "")
	s.untyped("--key", "eve", "send", "orders", `{"customer":"ada"}`).want(t, 0, want, "")
	for _, entries := range s.entries() {
		for _, e := range entries {
			if e.Values["__key"] != "eve" {
				t.Errorf("%v", e.Values)
			}
		}
	}
}

func TestSendIsStrictWithTypes(t *testing.T) {
	s := newShop(t, nil)
	tests := []struct{ name, record, err string }{
		{"unknown field", `{"custmer":"ada"}`, "custmer"},
		{"ill-typed field", `{"customer":1}`, "customer"},
		{"not JSON", `{customer}`, "invalid character"},
		{"two values", `{} {}`, "not sent"},
		{"nothing", ``, "not sent"},
		{"half a record", `{"customer":"ada"`, "not sent: decode *cli.order: json: the text ends too early"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := s.run("send", "orders", tt.record)
			r.want(t, 1, "", tt.err)
			if strings.Count(r.err, "\n") != 1 {
				t.Errorf("more than one line: %q", r.err)
			}
		})
	}
	if n := len(s.entries()); n != 0 {
		t.Errorf("%d partitions have entries", n)
	}
}

// A worker with types reads records sent without types, in any codec.
func TestUntypedSendIsUnderstood(t *testing.T) {
	for _, c := range []codec.Codec{codec.MsgPack, codec.JSON, codec.Gzip(codec.JSON)} {
		t.Run(c.Name(), func(t *testing.T) {
			s := newShop(t, &runnel.StreamOptions{KeyField: "customer", Codec: c})
			handled := s.handled()
			s.sends(order{Customer: "ada"})
			s.untyped("send", "orders", ` { "customer" : "bob", "amount" : 2 } `).want(t, 0, "orders ", "")
			at := fmt.Sprint("__strm:shop.orders.", runnel.XXHash.Func("bob", 16))
			entries := s.entries()[at]
			if len(entries) != 1 || c == codec.MsgPack && fmt.Sprint(entries[0].Values) != `map[json:{"customer":"bob","amount":2}]` {
				t.Errorf("%s holds %v", at, entries)
			}
			worker := s.start("worker")
			got := map[string]bool{}
			for range 2 {
				got[receive(t, handled, "event")] = true
			}
			if !got["ada"] || !got["bob"] {
				t.Errorf("handled %v", got)
			}
			worker.stop().want(t, 0, "", "worker stopped")
		})
	}
}

func TestUntypedSendFindsTheKey(t *testing.T) {
	s := newShop(t, nil)
	s.sends(order{})
	tests := []struct {
		name, record string
		key, err     string
	}{
		{"string", `{"customer":"a\u0062c"}`, "abc", ""},
		{"number", `{"customer":-12}`, "-12", ""},
		{"empty string", `{"customer":""}`, "", ""},
		{"missing", `{"amount":1}`, "", `no field "customer"`},
		{"fraction", `{"customer":1.5}`, "", "neither a string nor a whole number"},
		{"null", `{"customer":null}`, "", "neither a string nor a whole number"},
		{"nested", `{"a":{"customer":"x"}}`, "", `no field "customer"`},
		{"no object", `[1]`, "", "a record is a JSON object"},
		{"null record", `null`, "", "a record is a JSON object"},
		{"not JSON", `{`, "", "unexpected end of JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := s.untyped("send", "orders", tt.record)
			if tt.err != "" {
				r.want(t, 1, "", tt.err)
				return
			}
			r.want(t, 0, fmt.Sprintf("orders %d/", runnel.XXHash.Func(tt.key, 16)), "")
		})
	}
}

// With or without types, a record without the KeyField is refused. In a stream without a KeyField
// the key may be empty.
func TestTypedSendFindsTheKey(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{KeyField: "customer"})
	under := func(key string) string { return fmt.Sprintf("orders %d/", runnel.XXHash.Func(key, 16)) }
	for _, record := range []string{`{}`, `{"amount":1}`} {
		s.run("send", "orders", record).want(t, 1, "", `the record has no field "customer", which is the stream's key`)
	}
	if n := len(s.entries()); n != 0 {
		t.Errorf("%d partitions have entries", n)
	}
	s.run("send", "orders", `{"customer":""}`).want(t, 0, under(""), "")
	s.run("send", "orders", `{"Customer":"ada"}`).want(t, 0, under("ada"), "")
	s.run("send", "orders", `{}`, "--key", "eve").want(t, 0, under("eve"), "")
	newShop(t, &runnel.StreamOptions{}).run("send", "orders", `{}`).want(t, 0, under(""), "")
}

func TestUntypedSendRefusesWhatItCannotWrite(t *testing.T) {
	mine := &runnel.Partitioner{Name: "mine", Func: func(string, int) int { return 0 }}
	tests := []struct {
		name string
		opts runnel.StreamOptions
		err  string
	}{
		{"fields", runnel.StreamOptions{Codec: codec.Fields}, `codec "fields"`},
		{"partitioner", runnel.StreamOptions{Partitioner: mine}, `partitioner "mine"`},
		{"key", runnel.StreamOptions{}, "say it with --key, or give the stream a KeyField"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, &tt.opts)
			s.sends(order{})
			s.untyped("send", "orders", `{"customer":"ada"}`).want(t, 1, "", tt.err)
		})
	}
}

func TestUntypedSendUsesTheStreamsPartitioner(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitioner: python.Partitioner, KeyField: "customer"})
	s.sends(order{})
	s.untyped("send", "orders", `{"customer":"abc"}`).want(t, 0, "orders 1/", "")
	s.untyped("send", "orders", "{\"customer\":\"\xff\"}").want(t, 1, "", "not UTF-8, and Python's runnel")
}

// Python's runnel reads only the field data. Typed readers accept any.
func TestUntypedSendWritesWhatPythonReads(t *testing.T) {
	for _, c := range []codec.Codec{codec.JSON, codec.Gzip(codec.JSON), codec.LZ4(codec.JSON)} {
		t.Run(c.Name(), func(t *testing.T) {
			s := newShop(t, &runnel.StreamOptions{Codec: c, Partitions: 1})
			s.sends(order{})
			s.untyped("send", "orders", `{"customer": "<ada>"}`, "--key", "ada").want(t, 0, "orders 0/", "")
			run(t.Context(), nil, `{"customer": "<ada>"}`+"\n", "--app", s.app.Name(), "sendmany", "orders", "-", "--key", "ada").want(t, 0, "sent 1", "")
			s.untyped("send", "orders", `{"customer": "<ada>"}`, "--key", "ada", "--after", "1h").want(t, 0, "orders 0/", "")
			entries := s.rdb.XRevRangeN(t.Context(), "__strm:"+s.app.Name()+".orders.0", "+", "-", 2).Val()
			for _, e := range entries {
				data, _ := e.Values["data"].(string)
				var text json.RawMessage
				if err := c.Decode([]byte(data), &text); err != nil || string(text) != `{"customer":"<ada>"}` || len(e.Values) != 2 {
					t.Errorf("%q: %s, %v", e.Values, text, err)
				}
			}
			if len(entries) != 2 {
				t.Errorf("%d entries", len(entries))
			}
			s.untyped("tail", "orders").want(t, 0, `{"customer":"<ada>"}`, "")
		})
	}
}

func TestUnknownStreams(t *testing.T) {
	s := newShop(t, nil)
	s.untyped("send", "orders", "{}").want(t, 1, "", `no stream "orders"; it has none`)
	s.sends(order{})
	s.untyped("send", "nope", "{}").want(t, 1, "", `no stream "nope"; it has orders`)
	t.Setenv("RUNNEL_KEY_LAYOUT", "cluster")
	s.untyped("send", "orders", "{}").want(t, 1, "", "RUNNEL_KEY_LAYOUT=standalone")
}

func TestMetadataThatDiffersIsReportedOnce(t *testing.T) {
	s := newShop(t, nil)
	s.sends(order{})
	other := runnel.New("shop", &runnel.Options{Stream: runnel.StreamOptions{Partitions: 8}})
	t.Cleanup(func() { other.Close() })
	runnel.NewStream(other, "orders", func(o order) string { return o.Customer }, nil)
	for _, args := range [][]string{{"send", "orders", "{}"}, {"sendmany", "orders", "-"}} {
		r := run(t.Context(), other, "{}\n{}\n", args...)
		r.want(t, 1, "", "partitions 16, this process is set to 8: set StreamOptions.Partitions to 16, ")
		if strings.Count(r.err, "\n") != 1 {
			t.Errorf("more than one line: %q", r.err)
		}
	}
}

func TestStdinIsBounded(t *testing.T) {
	for _, tt := range []struct {
		in   string
		fits bool
	}{{"0123456789", true}, {"0123456789x", false}, {strings.Repeat("x", 1<<20), false}} {
		data, err := readAll(t.Context(), strings.NewReader(tt.in), 10)
		if (err == nil) != tt.fits || tt.fits && string(data) != tt.in || !tt.fits && (data != nil || !strings.Contains(err.Error(), "longer than 10 bytes")) {
			t.Errorf("%d bytes: %d bytes, %v", len(tt.in), len(data), err)
		}
	}
}

func TestSendDelayed(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer", Codec: codec.JSON})
	s.sends(order{"ada", 0})
	const record = `{"customer":"ada","amount":1}`
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, cmd := range []func(...string) result{s.run, s.untyped} {
		r := cmd("send", "orders", record, "--at", at.Format(time.RFC3339))
		if !regexp.MustCompile(`^orders [01]/\d{16}\n$`).MatchString(r.out) || r.code != 0 {
			t.Errorf("got %+v", r)
		}
		cmd("send", "orders", record, "--after", "30m", "--output", "json").want(t, 0, `"id":"`, "")
		first := cmd("send", "orders", record, "--after", "1h", "--id", "once")
		second := cmd("send", "orders", record, "--after", "2h", "--id", "once")
		if second.out != strings.TrimSuffix(first.out, "\n")+" duplicate\n" && second.out != first.out {
			t.Errorf("under one ID: %+v, then %+v", first, second)
		}
	}
	events := printed[[]shownDelayed](s, "delayed", "ls", "orders")
	if len(events) != 5 || !events[4].Due.Equal(at) && !events[3].Due.Equal(at) && !events[2].Due.Equal(at) || time.Until(events[0].Due) > 30*time.Minute {
		t.Errorf("got %+v", events)
	}
	s.run("send", "orders", record, "--at", time.Now().Add(-time.Hour).Format(time.RFC3339)).matches(t, `^orders [01]/\d+-\d\n$`)
	if n := s.count(); n != 2 {
		t.Errorf("%d entries", n)
	}
	for flags, want := range map[string]string{
		"--at tomorrow":                        `--at "tomorrow" is no time such as`,
		"--after -1h":                          "--after is a time to come",
		"--after 1h --at 2030-01-01T00:00:00Z": "either --at or --after",
	} {
		s.run(append([]string{"send", "orders", record}, strings.Fields(flags)...)...).want(t, 2, "", want)
	}
}

func TestSendWithAnIDIsOnce(t *testing.T) {
	s := newShop(t, nil)
	for i, send := range []func(...string) result{s.run, s.untyped} {
		id := fmt.Sprint("invoice-", i)
		first := send("send", "orders", `{"customer":"ada"}`, "--id", id)
		first.want(t, 0, "orders ", "")
		send("send", "orders", `{"customer":"ada"}`, "--id", id).want(t, 0, strings.TrimSpace(first.out)+" duplicate\n", "")
		again := parse[sentRecord](t, send("--output", "json", "send", "orders", `{"customer":"ada"}`, "--id", id))
		if !again.Duplicate || !strings.Contains(first.out, again.ID) {
			t.Errorf("%+v", again)
		}
		if n := s.count(); n != i+1 {
			t.Errorf("%d entries", n)
		}
	}
}

func TestSendToAFullStreamSaysWhoHoldsItBack(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1, MaxLen: 3, KeyField: "customer"})
	client := s.client()
	own := store.Meta{Partitions: 1, MaxLen: 3, KeyField: "customer", Processors: []string{"printer"}}
	if _, err := client.EnsureMeta(t.Context(), "orders", own); err != nil {
		t.Fatal(err)
	}
	s.run("sendmany", "orders", file(t, "a.ndjson", jsonLines(10))).
		want(t, 1, "sent 3, failed 7\n", "lines 4-10: not sent: partition 0 of stream orders is full, 3 of 3 entries: processor printer")
	for _, send := range []func(...string) result{s.run, s.untyped} {
		send("send", "orders", `{"customer":"ada"}`).want(t, 1, "", "processor rm orders/printer")
	}
	if n := s.count(); n != 3 {
		t.Errorf("%d entries", n)
	}
}
