package codec

import (
	"reflect"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/corpus"
)

// nested has what makes decoders recurse, allocate, or hash.
type nested struct {
	Text   string            `json:"text"`
	Int    int32             `json:"int"`
	Float  float64           `json:"float"`
	Raw    []byte            `json:"raw"`
	Any    any               `json:"any"`
	Map    map[string]any    `json:"map"`
	Texts  map[string]string `json:"texts"`
	ByAny  map[any]int       `json:"by_any,omitempty"`
	List   []nested          `json:"list"`
	Next   *nested           `json:"next"`
	At     time.Time         `json:"at"`
	Hash   [4]byte           `json:"hash"`
	Number [2]int            `json:"number"`
}

// fuzzPayload decodes anything into several types. What was decoded as a nested and
// can be encoded is decoded again, to the same bytes.
func fuzzPayload(f *testing.F, c Codec, again bool) {
	for _, record := range []any{nil, "text", 7, wideRecord(), []any{1, "x", nil}, map[string]any{"text": "x", "list": []any{}},
		nested{Text: "x", Any: []any{1.5, "y"}, Map: map[string]any{"k": nil}, List: []nested{{}}, Next: &nested{}, At: time.Unix(1, 600_000_000)}} {
		data, err := c.Encode(record)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, record := range []any{new(any), new(map[string]any), new(map[string]string), new([]wide), new(time.Time), new(string)} {
			_ = c.Decode(data, record)
		}
		var first nested
		if c.Decode(data, &first) != nil || !again {
			return
		}
		data, err := c.Encode(first)
		if err != nil {
			return
		}
		var second nested
		if err := c.Decode(data, &second); err != nil {
			t.Fatalf("decode %x: %v", data, err)
		}
		if twice, err := c.Encode(second); err != nil || string(twice) != string(data) {
			t.Fatalf("got  %x, %v\nwant %x", twice, err, data)
		}
	})
}

func FuzzMsgPack(f *testing.F) {
	for _, data := range hostile {
		if len(data) < 1000 {
			f.Add([]byte(data))
		}
	}
	fuzzPayload(f, MsgPack, true)
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(pythonJSON))
	fuzzPayload(f, JSON, true)
}

func FuzzGzip(f *testing.F) {
	f.Add([]byte(pythonGzip))
	fuzzPayload(f, Gzip(JSON), false)
}

func FuzzZstd(f *testing.F) { fuzzPayload(f, Zstd(MsgPack), false) }

func FuzzLZ4(f *testing.F) { fuzzPayload(f, LZ4(MsgPack), false) }

func FuzzFields(f *testing.F) {
	for _, text := range []string{"", "1", "-1.5", "true", "False", "nan", "1e+16", "255", "text", "\x00\xff"} {
		f.Add(text, text)
	}
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, a, b string) {
		c := Fields.(FieldCodec)
		fields := map[string]string{"id": b, "raw": a, a: b}
		for _, name := range []string{"big", "Low", "level", "amount", "ratio", "ok", "color", "Pause"} {
			fields[name] = a
			var first, second flat
			err := c.DecodeFields(fields, &first)
			if delete(fields, name); err != nil {
				continue
			}
			if err := c.DecodeFields(fieldsOf(t, first), &second); err != nil {
				t.Fatalf("decode %+v: %v", first, err)
			}
			if !reflect.DeepEqual(fieldsOf(t, second), fieldsOf(t, first)) {
				t.Fatalf("got %+v, want %+v", second, first)
			}
		}
	})
}
