package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/test/tier"
)

type item struct {
	Name  string  `json:"name"`
	Price float64 `json:"price"`
	Count int     `json:"count"`
	Notes [4]int  `json:"notes"`
}

type basket struct {
	Items []item           `json:"items"`
	Maybe []*item          `json:"maybe"`
	Next  *basket          `json:"next"`
	By    map[string]item  `json:"by"`
	Wide  map[int][40]item `json:"wide"`
	Lists [][]bool         `json:"lists"`
}

type plainItems struct {
	Items []item `json:"items"`
}

// packArray is the header of an array, packMap the one of a map.
func packArray(n int) string {
	return "\xdd" + string(binary.BigEndian.AppendUint32(nil, uint32(n)))
}

func packMap(n int) string {
	return "\xdf" + string(binary.BigEndian.AppendUint32(nil, uint32(n)))
}

func list(one string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

// members is an object of n members with keys of their own.
func members(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%x":%s`, i, value)
	}
	return "{" + b.String()[1:] + "}"
}

func packMembers(n int, value string) string {
	var b strings.Builder
	b.WriteString(packMap(n))
	for i := range n {
		fmt.Fprintf(&b, "\xa5%05x%s", i, value)
	}
	return b.String()
}

var wideRecords = []struct {
	name  string
	codec Codec
	data  string
	into  func() any
}{
	{"json, any, empty maps", JSON, list("{}", 100_000), func() any { return new(any) }},
	{"json, any, maps of one", JSON, list(`{"":0}`, 100_000), func() any { return new(any) }},
	{"json, any, arrays", JSON, list(`[0]`, 100_000), func() any { return new(any) }},
	{"json, any, numbers", JSON, list("0", 200_000), func() any { return new(any) }},
	{"json, any, texts", JSON, list(`""`, 200_000), func() any { return new(any) }},
	{"json, any, members", JSON, members(100_000, "1"), func() any { return new(any) }},
	{"json, any, just grown map", JSON, members(1<<16+1, "null"), func() any { return new(map[string]any) }},
	{"json, any, nested", JSON, strings.Repeat(`{"":`, 9000) + "1" + strings.Repeat("}", 9000), func() any { return new(any) }},
	{"json, text that is none", JSON, `"` + strings.Repeat("\xff", 1<<20) + `"`, func() any { return new(string) }},
	{"json, text with escapes", JSON, `"` + strings.Repeat(`\n`, 1<<20) + `"`, func() any { return new(string) }},
	{"json, text", JSON, `"` + strings.Repeat(`{[,:`, 1<<18) + `"`, func() any { return new(any) }},
	{"json, items", JSON, `{"items":` + list("{}", 100_000) + "}", func() any { return new(plainItems) }},
	{"json, pointers", JSON, `{"maybe":` + list("{}", 100_000) + "}", func() any { return new(basket) }},
	{"json, chain", JSON, strings.Repeat(`{"next":`, 9000) + "null" + strings.Repeat("}", 9000), func() any { return new(basket) }},
	{"json, map of items", JSON, `{"by":` + members(50_000, "{}") + "}", func() any { return new(basket) }},
	{"json, map of wide items", JSON, `{"wide":{"1":[],"2":[],"3":[]}}`, func() any { return new(basket) }},
	{"json, lists of bools", JSON, `{"lists":` + list("[true]", 100_000) + "}", func() any { return new(basket) }},
	{"msgpack, any, empty maps", MsgPack, packArray(200_000) + strings.Repeat("\x80", 200_000), func() any { return new(any) }},
	{"msgpack, any, nils", MsgPack, packArray(1_000_000) + strings.Repeat("\xc0", 1_000_000), func() any { return new(any) }},
	{"msgpack, any, maps of one", MsgPack, packArray(100_000) + strings.Repeat("\x81\xa0\xc0", 100_000), func() any { return new(any) }},
	{"msgpack, any, bytes", MsgPack, packArray(200_000) + strings.Repeat("\xc4\x00", 200_000), func() any { return new(any) }},
	{"msgpack, any, times", MsgPack, packArray(100_000) + strings.Repeat("\xd6\xff\x00\x00\x00\x01", 100_000), func() any { return new(any) }},
	{"msgpack, any, members", MsgPack, packMembers(100_000, "\xc0"), func() any { return new(any) }},
	{"msgpack, items", MsgPack, "\x81\xa5items" + packArray(100_000) + strings.Repeat("\x80", 100_000), func() any { return new(plainItems) }},
	{"msgpack, pointers", MsgPack, "\x81\xa5maybe" + packArray(100_000) + strings.Repeat("\x80", 100_000), func() any { return new(basket) }},
	{"msgpack, map of items", MsgPack, "\x81\xa2by" + packMembers(50_000, "\x80"), func() any { return new(basket) }},
	{"msgpack, text", MsgPack, "\xdb\x00\x80\x00\x00" + strings.Repeat("x", 8<<20), func() any { return new(any) }},
	{"msgpack, bytes", MsgPack, "\xc6\x00\x80\x00\x00" + strings.Repeat("x", 8<<20), func() any { return new([]byte) }},
}

// allocated returns the bytes that f allocated, and those that its result holds.
func allocated(f func() any) (all, held int64) {
	var before, after, settled runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := f()
	runtime.ReadMemStats(&after)
	runtime.GC()
	runtime.ReadMemStats(&settled)
	runtime.KeepAlive(v)
	return int64(after.TotalAlloc - before.TotalAlloc), int64(settled.HeapAlloc) - int64(before.HeapAlloc)
}

func TestRecordsTakeNoMoreThanIsSaid(t *testing.T) {
	tier.Sequential(t)
	const slack = 256 << 10
	for _, tt := range wideRecords {
		t.Run(tt.name, func(t *testing.T) {
			data, record := []byte(tt.data), tt.into()
			c := tt.codec.(LimitedCodec)
			takes, err := c.DecodeLimited(data, tt.into(), math.MaxInt64)
			if err != nil && !strings.Contains(err.Error(), "json: cannot unmarshal") {
				t.Fatal(err)
			}
			all, held := allocated(func() any { c.DecodeLimited(data, record, math.MaxInt64); return record })
			if held > takes+slack || all > 5*takes+slack {
				t.Errorf("%d bytes are said to take %d: %d are held, %d were allocated", len(data), takes, held, all)
			}
			record = tt.into()
			if _, err := c.DecodeLimited(data, record, takes-1); !errors.Is(err, ErrTooLarge) || !reflect.ValueOf(record).Elem().IsZero() {
				t.Errorf("with less: %v", err)
			}
			if _, err := c.DecodeLimited(data, record, takes); errors.Is(err, ErrTooLarge) {
				t.Error("with enough:", err)
			}
		})
	}
}

// Every element counts as the widest of the type, here the numbers in Notes as items.
func TestOrdinaryRecordsAreNotTakenForLarge(t *testing.T) {
	tier.Sequential(t)
	items := plainItems{Items: make([]item, 50_000)}
	for i := range items.Items {
		items.Items[i] = item{Name: fmt.Sprintf("item of the name %d", i), Price: float64(i) / 3, Count: i}
	}
	for _, c := range []LimitedCodec{JSON.(LimitedCodec), MsgPack.(LimitedCodec)} {
		data, err := c.Encode(items)
		if err != nil {
			t.Fatal(err)
		}
		var got plainItems
		takes, err := c.DecodeLimited(data, &got, math.MaxInt64)
		if err != nil || takes > 40<<20 {
			t.Errorf("%s: 50 000 items in %d bytes are said to take %d, %v", c.Name(), len(data), takes, err)
		}
		text := strings.Repeat("a: [1, {2}]", 5<<20)
		if _, err := c.Encode(text); err != nil {
			t.Errorf("%s: a text of %d bytes: %v", c.Name(), len(text), err)
		}
	}
}

// Small entries that take gigabytes.
func TestBombsAreRefused(t *testing.T) {
	tier.Sequential(t)
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	var big []byte
	for range 130 {
		big = append(big, zeros...)
	}
	for name, tt := range map[string]struct {
		codec Codec
		data  []byte
	}{
		"zstd":           {Zstd(JSON), zstdFrame(t, big, 0)},
		"zstd of blocks": {Zstd(JSON), zstdFrame(t, big[:80<<20], 64<<10)},
		"gzip":           {Gzip(JSON), gzipMember(t, big, 0)},
		"lz4":            {LZ4(JSON), lz4Frame(t, big, 0)},
		"msgpack, maps":  {MsgPack, []byte(packArray(2_000_000) + strings.Repeat("\x80", 2_000_000))},
		"msgpack, nils":  {MsgPack, []byte(packArray(2_000_000) + strings.Repeat("\xc0", 2_000_000))},
		"json":           {JSON, []byte(list("{}", 1_000_000))},
		"gzip of json":   {Gzip(JSON), gzipMember(t, []byte(list("{}", 1_000_000)), 0)},
		"zstd of maps":   {Zstd(MsgPack), zstdFrame(t, []byte(packArray(2_000_000)+strings.Repeat("\x80", 2_000_000)), 0)},
	} {
		var err error
		all, _ := allocated(func() any { var v any; err = tt.codec.Decode(tt.data, &v); return v })
		// Under the race detector a pool forgets some of its buffers, here blocks of 4 MiB.
		if !errors.Is(err, ErrTooLarge) || all > 224<<20 {
			t.Errorf("%s: %d bytes allocated %d: %v", name, len(tt.data), all, err)
		}
	}
}
