package codec

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type (
	level int8
	color string
	blob  []byte
)

type flat struct {
	ID      string `json:"id"`
	Big     uint64 `json:"big,omitempty"`
	Low     int64
	Level   level   `json:"level"`
	Amount  float64 `json:"amount"`
	Ratio   float32 `json:"ratio"`
	OK      bool    `json:"ok"`
	Color   color   `json:"color"`
	Raw     []byte  `json:"raw"`
	Blob    blob    `json:"blob"`
	Pause   time.Duration
	Skipped chan int `json:"-"`
	hidden  map[string]int
}

func fieldsOf(t *testing.T, record any) map[string]string {
	t.Helper()
	list, err := Fields.(FieldCodec).EncodeFields(record)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for pair := range slices.Chunk(list, 2) {
		fields[pair[0]] = pair[1]
	}
	if 2*len(fields) != len(list) {
		t.Fatalf("%d strings for %d fields", len(list), len(fields))
	}
	return fields
}

func TestFieldsKeepRecords(t *testing.T) {
	for _, record := range []flat{
		{},
		{ID: "x\x00\xff", Big: math.MaxUint64, Low: math.MinInt64, Level: -128, Amount: 0.1, Ratio: 0.1, OK: true,
			Color: "red", Raw: []byte{0, 255}, Blob: blob("b"), Pause: time.Hour},
		{Amount: math.Inf(1), Ratio: float32(math.Inf(-1)), Low: math.MaxInt64, Level: 127},
		{Amount: math.SmallestNonzeroFloat64, Ratio: math.MaxFloat32},
		{Amount: math.MaxFloat64, Ratio: math.SmallestNonzeroFloat32},
		{Amount: math.Copysign(0, -1)},
	} {
		var got flat
		if err := Fields.(FieldCodec).DecodeFields(fieldsOf(t, record), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, record) {
			t.Errorf("got %+v, want %+v", got, record)
		}
	}
}

func TestFieldsEncode(t *testing.T) {
	got, err := Fields.(FieldCodec).EncodeFields(flat{ID: "a", Amount: 1.5, Ratio: 0.1, OK: true, Low: -7, Raw: []byte("raw"), hidden: nil})
	want := []string{"id", "a", "big", "0", "Low", "-7", "level", "0", "amount", "1.5", "ratio", "0.1",
		"ok", "true", "color", "", "raw", "raw", "blob", "", "Pause", "0"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

// What Python's runnel writes: str() of each attribute.
func TestFieldsFromPython(t *testing.T) {
	tests := []struct {
		name   string
		fields map[string]string
		want   flat
	}{
		{"a record", map[string]string{"id": "caf\xc3\xa9", "amount": "1.5", "ok": "True", "Low": "-7"},
			flat{ID: "café", Amount: 1.5, OK: true, Low: -7}},
		{"False", map[string]string{"ok": "False"}, flat{}},
		{"large float", map[string]string{"amount": "1e+16"}, flat{Amount: 1e16}},
		{"small float", map[string]string{"amount": "1e-05"}, flat{Amount: 1e-5}},
		{"whole float", map[string]string{"amount": "3.0"}, flat{Amount: 3}},
		{"inf", map[string]string{"amount": "inf"}, flat{Amount: math.Inf(1)}},
		{"-inf", map[string]string{"amount": "-inf"}, flat{Amount: math.Inf(-1)}},
		{"unknown and missing", map[string]string{"other": "x", "__key": "k"}, flat{}},
		{"empty", nil, flat{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got flat
			if err := Fields.(FieldCodec).DecodeFields(tt.fields, &got); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
	got := flat{ID: "left over", OK: true, Raw: []byte("left over")}
	if err := Fields.(FieldCodec).DecodeFields(map[string]string{"raw": ""}, &got); err != nil || !reflect.DeepEqual(got, flat{}) {
		t.Errorf("missing and empty fields: got %+v, %v", got, err)
	}
	if err := Fields.(FieldCodec).DecodeFields(map[string]string{"amount": "nan"}, &got); err != nil || !math.IsNaN(got.Amount) {
		t.Errorf("nan: got %v, %v", got.Amount, err)
	}
}

func TestFieldsIllTyped(t *testing.T) {
	tests := []struct{ field, text, want string }{
		{"big", "-1", "is no uint64"},
		{"big", "18446744073709551616", "is out of the range of uint64"},
		{"Low", "1.0", "is no int64"},
		{"Low", "", "is no int64"},
		{"Low", "9223372036854775808", "is out of the range of int64"},
		{"Low", "1_000", "is no int64"},
		{"level", "128", "is out of the range of codec.level"},
		{"amount", "x", "is no float64"},
		{"amount", "", "is no float64"},
		{"amount", "1e999", "is out of the range of float64"},
		{"amount", "0x1p4", "is no float64"},
		{"ratio", "1e39", "is out of the range of float32"},
		{"ok", "1", "is no bool"},
		{"ok", "", "is no bool"},
		{"ok", "TRUE", "is no bool"},
	}
	for _, tt := range tests {
		err := Fields.(FieldCodec).DecodeFields(map[string]string{tt.field: tt.text}, new(flat))
		if err == nil || !strings.Contains(err.Error(), "field "+tt.field+":") || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s = %q: error %v, want %q", tt.field, tt.text, err, tt.want)
		}
	}
	long := Fields.(FieldCodec).DecodeFields(map[string]string{"ok": strings.Repeat("x", 1<<20)}, new(flat))
	if long == nil || len(long.Error()) > 200 {
		t.Errorf("an error of %d bytes", len(long.Error()))
	}
}

func TestFieldsCheck(t *testing.T) {
	type Base struct{ A int }
	type lower struct{ A int }
	type text string
	tests := []struct {
		record any
		want   []string // parts of the error, none for no error
	}{
		{flat{}, nil},
		{struct {
			A int
			text
		}{}, nil},
		{struct {
			//lint:ignore SA5008 the comma makes it a field of the name "-"
			Dash int `json:"-,"`
		}{}, nil},
		{"text", []string{"string is not a struct"}},
		{&flat{}, []string{"*codec.flat is not a struct"}},
		{map[string]string{}, []string{"not a struct"}},
		{struct{}{}, []string{"no field"}},
		{struct{ a int }{}, []string{"no field"}},
		{address2{}, []string{"codec.address2", "field Street", "*string"}},
		{struct{ At time.Time }{}, []string{"field At", "time.Time"}},
		{struct{ Home address }{}, []string{"field Home", "codec.address"}},
		{struct{ L []string }{}, []string{"field L", "[]string"}},
		{struct{ M map[string]int }{}, []string{"field M"}},
		{struct{ A any }{}, []string{"field A", "interface"}},
		{struct{ A [4]byte }{}, []string{"field A", "[4]uint8"}},
		{struct{ C complex128 }{}, []string{"field C"}},
		{struct{ Base }{}, []string{"field Base"}},
		{struct{ lower }{}, []string{"field lower"}},
		{struct{ *lower }{}, []string{"field lower"}},
		{struct {
			A int `json:"__key"`
		}{}, []string{"field A", "__key", "reserved"}},
		{struct {
			A int `json:"B"`
			B int
		}{}, []string{"A and B", "same name B"}},
	}
	for _, tt := range tests {
		err := Fields.(TypeChecker).Check(reflect.TypeOf(tt.record))
		if (err == nil) != (len(tt.want) == 0) {
			t.Errorf("%T: error %v, want %q", tt.record, err, tt.want)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%T: error %v, want %q", tt.record, err, part)
			}
		}
	}
}

type address2 struct{ Street *string }

func TestFieldsMisuse(t *testing.T) {
	c := Fields.(FieldCodec)
	for _, record := range []any{nil, 5, flat{}, (*flat)(nil), new(int), new(address2)} {
		if err := c.DecodeFields(nil, record); err == nil {
			t.Errorf("%T was decoded into", record)
		}
	}
	for _, record := range []any{nil, 5, &flat{}, address2{}} {
		if _, err := c.EncodeFields(record); err == nil {
			t.Errorf("%T was encoded", record)
		}
	}
	if _, err := c.Encode(flat{}); err == nil {
		t.Error("Encode made a payload")
	}
	if err := c.Decode(nil, new(flat)); err == nil {
		t.Error("Decode took a payload")
	}
}
