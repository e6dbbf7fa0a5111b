package codec

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

type hidden struct{ key, value string }

func (h hidden) id() string { return h.key + h.value }

type textual struct{ key string }

func (t *textual) MarshalText() ([]byte, error) { return []byte(t.key), nil }
func (t *textual) UnmarshalText(b []byte) error { t.key = string(b); return nil }

type packed struct{ key string }

func (b packed) EncodeMsgpack(e *msgpack.Encoder) error  { return e.EncodeString(b.key) }
func (b *packed) DecodeMsgpack(d *msgpack.Decoder) error { return d.Decode(&b.key) }

type knot struct {
	*knot
	n int
}

func (l knot) next() (*knot, int) { return l.knot, l.n }

// They end nowhere, and are fine: as JSON they are as deep as their values.
type (
	tree map[string]tree
	nest []nest
	ring *ring
)

func TestRecordsOfWhichNothingIsSentAreRefused(t *testing.T) {
	_ = hidden{}.id()
	_, _ = knot{}.next()
	type Named struct{ Key string }
	type inner struct{ Key string }
	none := "has no exported field that would be sent"
	for _, tt := range []struct {
		record        any
		json, msgpack string // part of the error, "" for none
	}{
		{hidden{}, none, none},
		{&hidden{}, none, none},
		{[]hidden{}, none, none},
		{map[string]*hidden{}, none, none},
		{struct{ hidden }{}, none, none},
		{struct {
			Key string `json:"-"`
		}{}, none, none},
		{struct {
			Key string `json:"key" msgpack:"-"`
		}{}, "", none},
		{struct {
			Key string `json:"-" msgpack:"key"`
		}{}, none, ""},
		{struct {
			//lint:ignore SA5008 the comma makes it a field of the name "-"
			Key string `json:"-,"`
		}{}, "", ""},
		{knot{}, none, none},
		{struct{}{}, "", ""},
		{struct{ _ struct{} }{}, "", ""},
		{struct {
			_ struct{}
			hidden
		}{}, none, none},
		{"text", "", ""},
		{tree{}, "", ""},
		{nest{}, "", ""},
		{ring(nil), "", ""},
		{big.Int{}, "", ""},
		{json.RawMessage{}, "", ""},
		{Named{}, "", ""},
		{struct{ Named }{}, "", ""},
		{struct{ inner }{}, "", ""},
		{struct{ Deep hidden }{}, "", ""},
		{struct{ time.Time }{}, "", ""},
		{time.Time{}, "", ""},
		{textual{}, "", ""},
		{[]textual{}, "", ""},
		{struct{ textual }{}, "", ""},
		{packed{}, none, ""},
	} {
		for codec, want := range map[Codec]string{JSON: tt.json, Gzip(JSON): tt.json, MsgPack: tt.msgpack, LZ4(MsgPack): tt.msgpack} {
			err := codec.(TypeChecker).Check(reflect.TypeOf(tt.record))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %T: error %v, want %q", codec.Name(), tt.record, err, want)
			}
		}
	}
}
