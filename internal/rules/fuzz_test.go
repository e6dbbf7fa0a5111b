package rules

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzParse reads anything as a stored rule. What it takes names a scope that is stored
// under the same name, and can be told.
func FuzzParse(f *testing.F) {
	f.Add("pause app", `{"v":1,"who":"ann","why":"x","at":1767225600123}`)
	f.Add("block partition:orders/printer/3", `{"v":1,"at":1,"until":9223372036854775807}`)
	f.Add("pause processor:a/b", `{"v":2}`)
	f.Add("generation", "7")
	f.Add("pause stream:", `null`)
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, name, value string) {
		set, err := Parse(map[string]string{name: value})
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("an error of no known kind: %v", err)
			}
			return
		}
		for _, r := range set.Rules {
			if r.Field() != name {
				t.Fatalf("%q is stored as %q", name, r.Field())
			}
			if scope, err := ParseScope(r.Scope.String()); err != nil || scope != r.Scope {
				t.Fatalf("%q: %v, %v", r.Scope, scope, err)
			}
			if _, err := json.Marshal([]time.Time{r.At, r.Until}); err != nil {
				t.Fatal(err)
			}
		}
		set.InForce(time.UnixMilli(1_767_225_600_123))
		set.NextEnd(time.UnixMilli(1_767_225_600_123))
	})
}
