// A record that Python's runnel would not read is refused when it is sent.

package runnel

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/codec"
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

// ofPython is a partitioner by whose name Python reads the stream.
var ofPython = &Partitioner{Name: pythonPrefix + "repr-xxh64", Func: XXHash.Func}

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
			for _, c := range []codec.Codec{codec.JSON, codec.Gzip(codec.JSON), codec.MsgPack} {
				for _, p := range []*Partitioner{ofPython, XXHash} {
					o := StreamOptions{Codec: c, Partitioner: p, Partitions: 1, MaxRecord: codec.DefaultLimit}
					s := encoding[pyRecord]{&declaration{app: app, name: "orders"}, func(pyRecord) string { return "" }}
					r := crossing()
					tt.change(&r)
					_, _, err := s.encode(&o, Outgoing[pyRecord]{Record: r}, nil)
					refuses := tt.want != "" && c != codec.MsgPack && (p == ofPython || tt.name == "NaN")
					if !refuses && err != nil || refuses && (err == nil || !strings.Contains(err.Error(), tt.want)) {
						t.Errorf("%s, %s: %v, want %q: %v", c.Name(), p.Name, err, tt.want, refuses)
					}
				}
			}
		})
	}
}
