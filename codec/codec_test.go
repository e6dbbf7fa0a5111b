package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

type address struct {
	Street string `json:"street"`
	Number int    `json:"number,omitempty"`
}

type base struct {
	Tenant string `json:"tenant"`
}

// wide has a field of everything that MsgPack and JSON keep.
type wide struct {
	base
	ID       uint64              `json:"id"`
	Min      int64               `json:"min"`
	Small    int8                `json:"small"`
	Amount   float64             `json:"amount"`
	Ratio    float32             `json:"ratio"`
	OK       bool                `json:"ok"`
	Note     string              `json:"note"`
	Raw      []byte              `json:"raw"`
	Hash     [4]byte             `json:"hash"`
	At       time.Time           `json:"at"`
	Pause    time.Duration       `json:"pause"`
	Home     address             `json:"home"`
	Work     *address            `json:"work"`
	Nobody   *address            `json:"nobody"`
	Tags     []string            `json:"tags"`
	Counts   map[string]int      `json:"counts"`
	ByNumber map[int]string      `json:"by_number"`
	Groups   map[string][]string `json:"groups"`
	IP       netip.Addr          `json:"ip"`
	Huge     big.Int             `json:"huge"`
	Renamed  string              `json:"new_name"`
	Plain    string
	Skipped  string `json:"-"`
	//lint:ignore U1000 unexported fields have to be passed over
	hidden string
}

func wideRecord() wide {
	return wide{
		base: base{"acme"}, ID: math.MaxUint64, Min: math.MinInt64, Small: -128, Amount: 0.1, Ratio: 1.5, OK: true,
		Note: "<a> & \"é\" 😀", Raw: []byte{0, 0xff, 0x80}, Hash: [4]byte{1, 2, 3, 4},
		At: time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC), Pause: time.Hour,
		Home: address{"Main", 7}, Work: &address{Street: "Side"}, Tags: []string{"x", ""},
		Counts: map[string]int{"a": 1, "b": math.MaxInt32}, ByNumber: map[int]string{-1: "m", 300: "p"},
		Groups: map[string][]string{"g": {"1", "2"}}, IP: netip.MustParseAddr("10.0.0.1"),
		Huge: *big.NewInt(0).Lsh(big.NewInt(1), 100), Renamed: "r", Plain: "p",
	}
}

// payloadCodecs are all codecs with a payload.
func payloadCodecs() []Codec {
	return []Codec{MsgPack, JSON, Gzip(MsgPack), Gzip(JSON), Zstd(MsgPack), Zstd(JSON), LZ4(MsgPack), LZ4(JSON), Gzip(Zstd(JSON))}
}

func TestCodecNames(t *testing.T) {
	want := []string{"msgpack", "json", "gzip+msgpack", "gzip+json", "zstd+msgpack", "zstd+json", "lz4+msgpack", "lz4+json", "gzip+zstd+json"}
	for i, c := range payloadCodecs() {
		if c.Name() != want[i] {
			t.Errorf("name = %q, want %q", c.Name(), want[i])
		}
	}
	if Fields.Name() != "fields" {
		t.Errorf("name = %q, want fields", Fields.Name())
	}
}

func TestCodecKeepsRecords(t *testing.T) {
	for _, c := range payloadCodecs() {
		t.Run(c.Name(), func(t *testing.T) {
			keeps(t, c, wideRecord())
			keeps(t, c, wide{At: time.Unix(0, 0)})
			keeps(t, c, "text")
			keeps(t, c, "")
			keeps(t, c, uint64(math.MaxUint64))
			keeps(t, c, int64(math.MinInt64))
			keeps(t, c, []byte("bytes"))
			keeps(t, c, map[string]string{"k": "v"})
			keeps(t, c, []address{{"a", 1}, {}})
			keeps(t, c, &address{"a", 1})
			keeps(t, c, (*address)(nil))
			keeps(t, c, map[string]any{"s": "x", "n": nil, "l": []any{true, "y"}})
			for _, year := range []int{1, 1901, 1969, 1970, 2038, 2088, 2106, 2514, 9999} {
				keeps(t, c, struct{ At time.Time }{time.Date(year, 1, 2, 3, 4, 5, 6, time.UTC)})
			}
		})
	}
}

// keeps encodes and decodes a record and compares; times by their instant.
func keeps[T any](t *testing.T, c Codec, record T) {
	t.Helper()
	data, err := c.Encode(record)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var got T
	if err := c.Decode(data, &got); err != nil {
		t.Fatalf("decode %x: %v", data, err)
	}
	inUTC(reflect.ValueOf(&got).Elem())
	want := record
	inUTC(reflect.ValueOf(&want).Elem())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// inUTC sets the time zone of every time in the fields of a struct.
func inUTC(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInterface() {
			if at, ok := f.Interface().(time.Time); ok {
				f.Set(reflect.ValueOf(at.UTC()))
			}
		}
	}
}

// Every nanosecond pattern, in particular those that begin like the header of a map.
func TestMsgPackTimes(t *testing.T) {
	type timed struct {
		Any any       `json:"any"`
		At  time.Time `json:"at"`
		End string    `json:"end"`
	}
	for high := range 256 {
		for _, sec := range []int64{1700000000, 1<<34 - 1, 1 << 34, -1, int64(high) << 24} {
			nsec := int64(high) << 22 % 1e9
			for _, nsec := range []int64{nsec, nsec + 1, 0} {
				at := time.Unix(sec, nsec)
				data, err := MsgPack.Encode(timed{at, at, "end"})
				if err != nil {
					t.Fatal(err)
				}
				var got timed
				if err := MsgPack.Decode(data, &got); err != nil {
					t.Fatalf("%v: %v", at, err)
				}
				if in, ok := got.Any.(time.Time); !ok || !in.Equal(at) || !got.At.Equal(at) || got.End != "end" {
					t.Fatalf("got %+v, want %v", got, at)
				}
			}
		}
	}
}

// Both formats use the same names, or a stream could not change its codec without
// changing its records.
func TestSameNames(t *testing.T) {
	record := wideRecord()
	record.ByNumber = nil // in an any, keys must be strings
	var packed, text map[string]any
	data, err := MsgPack.Encode(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := MsgPack.Decode(data, &packed); err != nil {
		t.Fatal(err)
	}
	if data, err = JSON.Encode(record); err != nil {
		t.Fatal(err)
	}
	if err := JSON.Decode(data, &text); err != nil {
		t.Fatal(err)
	}
	if len(packed) != len(text) {
		t.Errorf("msgpack has %d names, json %d", len(packed), len(text))
	}
	for name := range text {
		if _, ok := packed[name]; !ok {
			t.Errorf("msgpack has no %q", name)
		}
	}
	if home := packed["home"].(map[string]any); home["street"] != "Main" {
		t.Errorf("home = %v", home)
	}
}

func TestEncodings(t *testing.T) {
	tests := []struct {
		name   string
		codec  Codec
		record any
		want   string
	}{
		{"msgpack omits empty", MsgPack, address{"a", 0}, "\x81\xa6street\xa1a"},
		{"msgpack ints are compact", MsgPack, struct{ A int64 }{7}, "\x81\xa1A\x07"},
		{"msgpack uint16", MsgPack, uint64(300), "\xcd\x01\x2c"},
		{"msgpack nil", MsgPack, nil, "\xc0"},
		{"json is compact", JSON, address{"a", 1}, `{"street":"a","number":1}`},
		{"json omits empty", JSON, address{"a", 0}, `{"street":"a"}`},
		{"json does not escape HTML", JSON, "<&>", `"<&>"`},
		{"json nil", JSON, nil, `null`},
		{"pointer receiver", JSON, onlyPointer{"x"}, `"<x>"`},
		{"pointer receiver inside", JSON, struct{ P onlyPointer }{onlyPointer{"x"}}, `{"P":"<x>"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.codec.Encode(tt.record)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

type onlyPointer struct{ s string }

func (p *onlyPointer) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"<%s>"`, p.s), nil }

func TestEncodeIsDeterministic(t *testing.T) {
	texts, bools, anys, counts, numbered := map[string]string{}, map[string]bool{}, map[string]any{}, map[string]int{}, map[int]map[string]int8{}
	for i := range 50 {
		k := fmt.Sprint("k", i)
		texts[k], bools[k], anys[k], counts[k] = k, i%2 == 0, map[string]int{k: i, "z": 1}, i
		numbered[i] = map[string]int8{k: 1, "a": 2}
	}
	record := map[string]any{"texts": texts, "bools": bools, "anys": anys, "counts": counts, "numbered": numbered}
	for _, c := range payloadCodecs() {
		for _, r := range []any{record, texts, struct{ C map[string]int }{counts}, struct{ N []map[int]map[string]int8 }{[]map[int]map[string]int8{numbered}}} {
			first, err := c.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if again, err := c.Encode(r); err != nil || !bytes.Equal(again, first) {
					t.Fatalf("%s: %T: two encodings, or %v", c.Name(), r, err)
				}
			}
		}
	}
}

// The framework decodes from the memory of a string. This one is a constant: a
// decoder that wrote to it would end the process.
func TestDecodeDoesNotWrite(t *testing.T) {
	const packed = "\x83\xa4Note\xa5hello\xa3Raw\xc4\x03\x01\x02\x03\xa2At\xd7\xff\x88\x00\x00\x00\x00\x00\x00\x01"
	const text = ` { "Note" : "hel\u006co" , "Raw" : "AQID" } `
	for data, c := range map[string]Codec{packed: MsgPack, text: JSON} {
		var got struct {
			Note string
			Raw  []byte
			At   time.Time
		}
		if err := c.Decode(unsafe.Slice(unsafe.StringData(data), len(data)), &got); err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		if got.Note != "hello" || !bytes.Equal(got.Raw, []byte{1, 2, 3}) {
			t.Errorf("%s: got %+v", c.Name(), got)
		}
	}
}

func TestDecodedIsIndependent(t *testing.T) {
	type kept struct {
		Text  string
		Raw   []byte
		Any   any
		Map   map[string]string
		Later json.RawMessage
		IP    netip.Addr
	}
	record := kept{"text", []byte("raw"), []any{"any"}, map[string]string{"k": "v"}, json.RawMessage(`{"a":1}`), netip.MustParseAddr("::1")}
	for _, c := range payloadCodecs() {
		data, err := c.Encode(record)
		if err != nil {
			t.Fatal(err)
		}
		var got kept
		if err := c.Decode(data, &got); err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		for i := range data {
			data[i] = '#'
		}
		var other kept
		second, _ := c.Encode(kept{Text: strings.Repeat("#", 200)})
		if err := c.Decode(second, &other); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, record) {
			t.Errorf("%s: got %+v, want %+v", c.Name(), got, record)
		}
	}
}

func TestCodecsAreConcurrent(t *testing.T) {
	for _, c := range payloadCodecs() {
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 50 {
					want := address{strings.Repeat(fmt.Sprint(w), 10+i), i}
					data, err := c.Encode(want)
					if err != nil {
						t.Error(err)
						return
					}
					var got address
					if err := c.Decode(data, &got); err != nil || got != want {
						t.Errorf("%s: got %v, %v, want %v", c.Name(), got, err, want)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestEncodedIsIndependent(t *testing.T) {
	for _, c := range payloadCodecs() {
		for _, size := range []int{1, maxPooled / 16} { // of a buffer that is used again, and of one that is not
			first, err := c.Encode(strings.Repeat("a longish record, ", size))
			if err != nil {
				t.Fatal(err)
			}
			before := bytes.Clone(first)
			for range 20 {
				if _, err := c.Encode(strings.Repeat("A LONGISH RECORD, ", size)); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(first, before) {
				t.Errorf("%s: a later record overwrote one of %d bytes", c.Name(), len(first))
			}
		}
	}
}

type panics struct{}

func (panics) MarshalText() ([]byte, error) { panic("no text") }
func (*panics) UnmarshalText([]byte) error  { panic("no text") }

func TestPanicsAreErrors(t *testing.T) {
	for _, c := range payloadCodecs() {
		if _, err := c.Encode(panics{}); err == nil || !strings.Contains(err.Error(), "no text") {
			t.Errorf("%s: encode: %v", c.Name(), err)
		}
		data, err := c.Encode("text")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Decode(data, new(panics)); err == nil || !strings.Contains(err.Error(), "no text") {
			t.Errorf("%s: decode: %v", c.Name(), err)
		}
	}
}
