package runnel

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
)

type pyBase struct {
	Tags []string `json:"tags"`
}

type pyRecord struct {
	pyBase
	Name    string                `json:"name"`
	Bytes   []byte                `json:"bytes"`
	Lines   []pyBase              `json:"lines"`
	Prices  map[string]*[]float64 `json:"prices"`
	Maybe   *[]int                `json:"maybe"`
	Left    []int                 `json:"left,omitempty"`
	Zero    map[string]int        `json:"zero,omitzero"`
	Hidden  []int                 `json:"-"`
	private []int
	At      time.Time `json:"at"`
	Any     any       `json:"any"`
	Untold  [1]string
}

func crossing() pyRecord {
	return pyRecord{pyBase: pyBase{[]string{}}, Bytes: []byte{0xff}, Lines: []pyBase{}, Prices: map[string]*[]float64{"a": nil}}
}

// What Python's runnel would refuse, or read as something else, is refused when it is sent.
func TestRecordsThatDoNotCrossToPython(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*pyRecord)
		want   string // "": it is sent
	}{
		{"all that crosses", func(r *pyRecord) { r.Name, r.private = "é\ufffd", nil }, ""},
		{"promoted", func(r *pyRecord) { r.Tags = nil }, "field tags: a nil slice is null as JSON"},
		{"inside", func(r *pyRecord) { r.Lines = []pyBase{{[]string{"a"}}, {}} }, "field lines[1].tags: a nil slice"},
		{"nil map", func(r *pyRecord) { r.Prices = nil }, "field prices: a nil map"},
		{"nil behind a pointer", func(r *pyRecord) { r.Prices["a"] = new([]float64) }, `field prices["a"]: a nil slice`},
		{"nil bytes", func(r *pyRecord) { r.Bytes = nil }, "field bytes: a nil slice"},
		{"in any", func(r *pyRecord) { r.Any = map[string]any{"x": []string(nil)} }, `field any["x"]: a nil slice`},
		{"text", func(r *pyRecord) { r.Name = "a\xff" }, `field name: "a\xff" is not UTF-8`},
		{"lone surrogate", func(r *pyRecord) { r.Untold[0] = "\xed\xa0\x80" }, "field Untold[0]: "},
		{"key of a map", func(r *pyRecord) { r.Prices["\xff"] = nil }, `field prices["\xff"]: "\xff" is not UTF-8`},
		{"NaN", func(r *pyRecord) { r.Any = math.NaN() }, "JSON has no NaN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			app := New("shop", nil)
			defer app.Close()
			for _, codec := range []Codec{JSON, Gzip(JSON), MsgPack} {
				for _, p := range []*Partitioner{PythonPartitioner, XXHash} {
					o := StreamOptions{Codec: codec, Partitioner: p, Partitions: 1, MaxRecord: defaultMaxRecord}
					s := &Stream[pyRecord]{app: app, name: "orders", key: func(pyRecord) string { return "" }}
					r := crossing()
					tt.change(&r)
					_, _, err := s.encode(&o, Outgoing[pyRecord]{Record: r}, nil)
					refuses := tt.want != "" && codec != MsgPack && (p == PythonPartitioner || tt.name == "NaN")
					if !refuses && err != nil || refuses && (err == nil || !strings.Contains(err.Error(), tt.want)) {
						t.Errorf("%s, %s: %v, want %q: %v", codec.Name(), p.Name, err, tt.want, refuses)
					}
				}
			}
		})
	}
}

// What Python writes and Go cannot read is told with its remedy.
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
