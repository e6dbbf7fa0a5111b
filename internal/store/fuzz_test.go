package store

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzStored parses anything as each value that is stored as JSON. What parses encodes again.
func FuzzStored(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `null`, `[]`, `{"v":1}`, `{"v":2}`, `{"v":1,"partitions":4,"size":9,"codec":"json","partitioner":"xxh64","layout":"standalone","processors":["a"]}`, `{"v":2,"kind":"set","parts":["a"]}`,
		`{"v":1,"rules":3,"running":{"-1":9223372036854775807,"2":1767225600123}}`,
		`{"v":2,"lane":"h0","key":"k","sum":"0","n":2}`, `{"v":1,"attempts":2,"first":1767225600123,"last":-9223372036854775808,"at":1,"lane":"x","error":"e"}`,
		`{"v":1,"reason":"r","event":"1-1","worker":"w","at":9223372036854775807}`,
	} {
		f.Add(text)
	}
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := parseMeta([]byte(text)); err == nil {
			if m.Version != MetaVersion && m.Version != KindVersion {
				t.Fatalf("%+v", m)
			}
			m.dedupWindow()
		}
		for _, since := range ParseHeartbeat(text).Running {
			tell(t, since)
		}
		if q, err := parseQuarantine(text); err == nil && q != nil {
			tell(t, entryid.MomentOf(q.At))
		}
		if s, err := parseRetry("1-1", text); err == nil {
			tell(t, entryid.MomentOf(s.First), entryid.MomentOf(s.Last), entryid.MomentOf(s.At))
			if s.Counted() < 0 {
				t.Fatalf("%d attempts", s.Counted())
			}
		}
	})
}

func tell(t *testing.T, times ...time.Time) {
	t.Helper()
	if _, err := json.Marshal(times); err != nil {
		t.Fatal(err)
	}
}

// FuzzPacked unpacks anything. What was unpacked survives packing.
func FuzzPacked(f *testing.F) {
	f.Add("")
	f.Add(pack([]string{"data", "x", "", "\x00:"}))
	f.Add("3:abc")
	f.Add("9223372036854775807:a")
	f.Add("-1:1:a")
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, text string) {
		values, err := unpack(text)
		if err != nil {
			return
		}
		again, err := unpack(pack(flatten(values)))
		if err != nil || !maps.Equal(values, again) {
			t.Fatalf("%q, %v, want %q", again, err, values)
		}
	})
}

// FuzzEntry parses an entry with any fields as a control message, a hint and a dead letter.
func FuzzEntry(f *testing.F) {
	f.Add("1-1", "v", "1", "kind", "join", "partition", "3")
	f.Add("18446744073709551615-1", "v", "1", "kind", "poke", "partition", "-1")
	f.Add("1-1", deadID, "99999999999999999-0", deadFirst, "9223372036854775807", deadPacked, "4:data1:x")
	f.Add("x", deadAttempts, "-7", deadEpoch, "x", "data", "x")
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, id, n1, v1, n2, v2, n3, v3 string) {
		e := redisconn.Entry{ID: id, Values: map[string]any{n1: v1, n2: v2, n3: v3}}
		if h, ok := ParseHint(e); ok && !hintKinds[h.Kind] {
			t.Fatalf("%+v", h)
		}
		_, _ = ParseControl(e)
		ControlKind(e)
		if d, err := parseDead(e, 3); err == nil {
			tell(t, d.First, d.Last, entryid.Time(d.ID), entryid.Time(d.Entry.ID))
			if d.Entry.Values == nil || d.Partition != 3 {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// FuzzIDs treats any text as an entry ID and as a DelayedID.
func FuzzIDs(f *testing.F) {
	f.Add("0-0", "0-1", "3/0000000000000001")
	f.Add("18446744073709551615-18446744073709551615", "1", "0/x")
	f.Add("-", "", "-1/1")
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, a, b, delayed string) {
		if entryid.Compare(a, b) != -entryid.Compare(b, a) || entryid.Compare(a, a) != 0 {
			t.Fatalf("%q and %q: %d, %d", a, b, entryid.Compare(a, b), entryid.Compare(b, a))
		}
		tell(t, entryid.Time(a))
		if at := entryid.Before(a); strings.Count(at, "-") != 1 {
			t.Fatalf("before %q is %q", a, at)
		}
		if n, id, ok := ParseDelayedID(delayed); ok {
			if m, again, ok := ParseDelayedID(DelayedID(n, id)); !ok || m != n || again != id {
				t.Fatalf("%q became %d, %q", delayed, m, again)
			}
		}
	})
}
