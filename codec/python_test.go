package codec

import (
	"math/big"
	"strings"
	"testing"
	"time"
)

// The error for JSON that Python writes and Go cannot read names the remedy.
func TestErrorsOfWhatPythonWrites(t *testing.T) {
	type record struct {
		At    time.Time
		Float float64
		Int   int64
		Big   *big.Int
	}
	for _, tt := range []struct{ data, want string }{
		{`{"At":"2026-11-23T00:16:28.296746"}`, "datetime.now(timezone.utc)"},
		{`{"At":"2026-11-23T00:16:28"}`, "datetime.now(timezone.utc)"},
		{`{"At":"2026-11-23T00:16:28.296746+00:00"}`, ""},
		{`{"Float":NaN}`, "Optional[float]"},
		{`{"Float":Infinity}`, "Optional[float]"},
		{`{"Float":-Infinity}`, "Optional[float]"},
		{`{"Int":9223372036854775808}`, "*big.Int"},
		{`{"Big":9223372036854775808}`, ""},
	} {
		var r record
		if err := JSON.Decode([]byte(tt.data), &r); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.data, err, tt.want)
		}
	}
	cycle := map[string]any{}
	cycle["x"] = cycle
	if _, err := JSON.Encode(cycle); err == nil || strings.Contains(err.Error(), "Python") {
		t.Errorf("a cycle: %v", err)
	}
	for _, data := range []string{`{"At":"yesterday"}`, `{"Int":1.5}`, `{"Int":1e30}`, `{"Int":"7"}`, `{"Float":x}`, `{`} {
		if err := JSON.Decode([]byte(data), new(record)); err == nil || strings.Contains(err.Error(), "Python") {
			t.Errorf("%s: %v", data, err)
		}
	}
}
