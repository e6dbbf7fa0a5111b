// A record given as JSON is refused if it has a field that its type has not.

package runnel

import (
	"reflect"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/corpus"
)

type strictRecord struct {
	Street string  `json:"street"`
	Number int     `json:"number,omitempty"`
	None   *string `json:"none"`
}

func TestDecodeStrict(t *testing.T) {
	tests := []struct{ data, want string }{ // want: part of the error, "" for none
		{`{"street":"a","number":1}`, ""},
		{` {} `, ""},
		{`{"streat":"a"}`, `unknown field "streat"`},
		{`{"number":"7"}`, "number"},
		{`{"number":1.5}`, "number"},
		{`{"street":"a"} x`, "more than one value"},
		{`{"street":"a"}{}`, "more than one value"},
		{`null`, "null is no record"},
		{``, "unexpected EOF"},
		{`{"street":`, "unexpected EOF"},
		{`[]`, "array"},
	}
	for _, tt := range tests {
		var got strictRecord
		err := decodeStrict([]byte(tt.data), &got)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", tt.data, err, tt.want)
		}
	}
}

func FuzzDecodeStrict(f *testing.F) {
	f.Add([]byte(`{"street":"caf\u00e9 \ud83d\ude00 <b>&\"","number":9223372036854775807,"none":null}`))
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var strict, plain strictRecord
		if decodeStrict(data, &strict) != nil {
			return
		}
		if err := codec.JSON.Decode(data, &plain); err != nil || !reflect.DeepEqual(strict, plain) {
			t.Fatalf("strict is %+v, plain %+v, %v", strict, plain, err)
		}
	})
}
