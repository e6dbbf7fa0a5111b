package codec

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostile are payloads whose headers promise more than there is, or nest too deep.
var hostile = map[string]string{
	"empty":                   "",
	"bytes of 4 GiB":          "\xc6\xff\xff\xff\xff",
	"string of 4 GiB":         "\xdb\xff\xff\xff\xff",
	"array of 2^32":           "\xdd\xff\xff\xff\xff",
	"map of 2^32":             "\xdf\xff\xff\xff\xff",
	"map of 2^31":             "\xdf\x80\x00\x00\x00",
	"map of 2^30":             "\xdf\x40\x00\x00\x00",
	"array of 65535":          "\xdc\xff\xff\xc0",
	"array in array":          "\x91\xdd\x10\x00\x00\x00",
	"extension of 4 GiB":      "\xc9\xff\xff\xff\xff\xff",
	"unknown extension":       "\xd4\x05\x00",
	"interned string":         "\xd4\x80\x00",
	"time of 1 byte":          "\xd4\xff\x80",
	"time of 16 bytes":        "\xd8\xff" + strings.Repeat("\x00", 16),
	"time, 2^30 nanoseconds":  "\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x00",
	"time, 2^32 nanoseconds":  "\xc7\x0c\xff\xdf\xff\xff\xff" + strings.Repeat("\x00", 8),
	"time cut off":            "\xd7\xff\x00\x00",
	"time without a body":     "\xc7\x0c\xff",
	"extension without type":  "\xc7\x0c",
	"extension without size":  "\xc8\x0c",
	"reserved code":           "\xc1",
	"string cut off":          "\xa5abc",
	"float cut off":           "\xcb\x00",
	"map without value":       "\x81\xa1a",
	"trailing byte":           "\xc0\xc0",
	"arrays nested too deep":  strings.Repeat("\x91", maxDepth) + "\xc0",
	"arrays nested for ever":  strings.Repeat("\x91", 1<<20),
	"maps nested too deep":    strings.Repeat("\x81\xa1a", maxDepth) + "\xc0",
	"unknown field, too deep": "\x81\xa1x" + strings.Repeat("\x91", 1<<20) + "\xc0",
}

func TestMsgPackRefuses(t *testing.T) {
	targets := map[string]func() any{
		"struct": func() any { return new(wide) },
		"any":    func() any { return new(any) },
		"map":    func() any { return new(map[string]any) },
		"slice":  func() any { return new([]wide) },
		"bytes":  func() any { return new([]byte) },
		"time":   func() any { return new(time.Time) },
	}
	for name, data := range hostile {
		for target, record := range targets {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := MsgPack.Decode([]byte(data), record())
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Errorf("%s was accepted as %s", name, target)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
				t.Errorf("%s as %s: %d bytes allocated", name, target, grown)
			}
		}
	}
}

func TestScanIsWhole(t *testing.T) {
	if _, _, err := scanMsgPack([]byte("\xc0\xc0"), weights{}); err != errPackTail {
		t.Errorf("trailing byte: %v", err)
	}
}

// A timestamp where a map is expected is an error, whatever its bytes look like.
func TestTimeIsNoMap(t *testing.T) {
	for _, data := range []string{
		"\xd7\xff\xdf\xff\xff\xff\xff\xff\xff\xff", // a map of 2^32
		"\xd7\xff\xc0\xdf\xff\xff\xff\xff\xff\xff", // nil, and then a map
		"\xd7\xff\x81\xa1\x61\xdd\xff\xff\xff\xff", // {"a": array of 2^32}
		"\xd7\xff\x80\xdd\xff\xff\xff\xff\xff\xff",
		"\xd6\xff\xde\xff\xff\x00",
		"\xd6\xff\xc0\x00\x00\x00",
	} {
		for _, record := range []any{new(map[string]any), new(map[string]string), new(map[int]int),
			new(struct{ A map[string]any })} {
			in := data
			if reflect.TypeOf(record).Elem().Kind() == reflect.Struct {
				in = "\x81\xa1A" + data
			}
			if err := MsgPack.Decode([]byte(in), record); err == nil {
				t.Errorf("%x was accepted as %T", data, record)
			}
		}
	}
	// Taken for nil, it would leave the rest of its body to be read as field B.
	data := "\x82\xa1A\xd7\xff\xc0\xa1B\xdd\xff\xff\xff\xff\xa1B\xc0"
	if err := MsgPack.Decode([]byte(data), new(struct {
		A map[string]any
		B any
	})); err == nil {
		t.Errorf("%x was accepted", data)
	}
}

func TestMsgPackTypeErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		data   string
		record any
	}{
		"string for int":       {"\xa1a", new(int)},
		"int for string":       {"\x01", new(string)},
		"map for slice":        {"\x80", new([]int)},
		"array of other size":  {"\x91\x01", new(address)},
		"key that is no key":   {"\x81\x90\x01", new(map[any]any)},
		"value for an error":   {"\x01", new(error)},
		"not a pointer":        {"\x01", 5},
		"nil":                  {"\x01", nil},
		"nil pointer":          {"\x01", (*int)(nil)},
		"unsupported":          {"\x01", new(chan int)},
		"too long for [4]byte": {"\xc4\x05abcde", new([4]byte)},
	} {
		if err := MsgPack.Decode([]byte(tt.data), tt.record); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestMsgPackDepth(t *testing.T) {
	data := strings.Repeat("\x91", maxDepth-1) + "\xc0"
	var got any
	if err := MsgPack.Decode([]byte(data), &got); err != nil {
		t.Fatal(err)
	}
	depth := 0
	for v, ok := got.([]any); ok; v, ok = v[0].([]any) {
		depth++
	}
	if depth != maxDepth-1 {
		t.Errorf("depth %d, want %d", depth, maxDepth-1)
	}
}

func TestMsgPackCheck(t *testing.T) {
	type Base struct{ A int }
	type node struct{ Next *node }
	tests := []struct {
		record any
		want   string // part of the error, "" for none
	}{
		{wide{}, ""},
		{node{}, ""},
		{"text", ""},
		{struct {
			A int
			C chan int `json:"-"`
		}{}, ""},
		{struct{ Base }{}, ""},
		{struct{ *Base }{}, ".Base: embedded pointers"},
		{[]struct{ *Base }{}, "[].Base: embedded pointers"},
		{struct{ C chan int }{}, ".C: chan int cannot be encoded"},
		{struct{ M map[string]func() }{}, ".M[]: func() cannot be encoded"},
		{struct{ M map[complex64]int }{}, ".M[key]: complex64"},
		{struct {
			S string `msgpack:",intern"`
		}{}, ".S: interned strings"},
	}
	for _, tt := range tests {
		for _, c := range []Codec{MsgPack, Gzip(MsgPack), Zstd(LZ4(MsgPack))} {
			err := c.(TypeChecker).Check(reflect.TypeOf(tt.record))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: %T: error %v, want %q", c.Name(), tt.record, err, tt.want)
			}
		}
	}
	if err := Gzip(JSON).(TypeChecker).Check(reflect.TypeOf(struct{ *Base }{})); err != nil {
		t.Errorf("gzip+json: %v", err)
	}
}

func TestSortPacked(t *testing.T) {
	data := []byte("\x92\x82\xa1b\x82\x02\xa1y\x01\xa1x\xa1a\xc0\xde\x00\x02\x02\x90\x01\x80")
	want := []byte("\x92\x82\xa1a\xc0\xa1b\x82\x01\xa1x\x02\xa1y\xde\x00\x02\x01\x80\x02\x90")
	if err := sortPacked(data); err != nil || !bytes.Equal(data, want) {
		t.Errorf("got  %x, %v\nwant %x", data, err, want)
	}
}
