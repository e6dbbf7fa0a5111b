package python

import (
	"testing"

	"github.com/runnel-go/runnel/internal/test/corpus"
)

func FuzzRepr(f *testing.F) {
	f.Add("it's \"\\\x00\u2028\U000e0001\xff")
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, key string) {
		got := appendRepr(nil, key)
		if len(got) < 2 || got[0] != got[len(got)-1] || got[0] != '\'' && got[0] != '"' {
			t.Fatalf("%+q became %s", key, got)
		}
		if p := Partitioner.Func(key, 7); p < 0 || p >= 7 {
			t.Fatalf("partition %d of 7", p)
		}
	})
}
