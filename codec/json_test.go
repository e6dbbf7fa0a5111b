package codec

import (
	"math"
	"strings"
	"testing"
)

// What Python's json.dumps(…, separators=(",", ":")) writes.
const pythonJSON = `{"name":"caf\u00e9 \ud83d\ude00 <b>&\"","amount":1.5,"count":9223372036854775807,"ok":true,"none":null}`

type fromPython struct {
	Name   string  `json:"name"`
	Amount float64 `json:"amount"`
	Count  int64   `json:"count"`
	OK     bool    `json:"ok"`
	None   *string `json:"none"`
}

var wantPython = fromPython{"café 😀 <b>&\"", 1.5, math.MaxInt64, true, nil}

func TestJSONFromPython(t *testing.T) {
	var got fromPython
	if err := JSON.Decode([]byte(pythonJSON), &got); err != nil || got != wantPython {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestJSONRefuses(t *testing.T) {
	for _, data := range []string{"", " ", "{", `{"street":"a"}x`, `{"street":"a"}{}`, `{"street":1}`, `{"number":1.5}`,
		`{"number":99999999999999999999}`, "[]", "nul", "\x00", strings.Repeat(`{"a":`, 20000)} {
		if err := JSON.Decode([]byte(data), new(address)); err == nil {
			t.Errorf("%.20q was accepted", data)
		} else if !strings.HasPrefix(err.Error(), "decode *codec.address: ") {
			t.Errorf("%.20q: %v does not name the type", data, err)
		}
	}
}
