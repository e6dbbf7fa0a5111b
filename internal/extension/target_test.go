package extension_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
)

func TestFilterChooses(t *testing.T) {
	died := time.Unix(1000, 0)
	one := &extension.Failure{Partition: 3, ID: "3/7-0", Event: "3/5-0", Key: "ada", Error: "No ink", Reason: "failed", Died: &died}
	key := func(k string) *string { return &k }
	for _, tt := range []struct {
		name string
		f    extension.Filter
		want bool
	}{
		{"nothing", extension.Filter{}, true},
		{"its partition", extension.Filter{Partitions: []int{1, 3}}, true},
		{"another partition", extension.Filter{Partitions: []int{1}}, false},
		{"its key", extension.Filter{Key: key("ada")}, true},
		{"the empty key", extension.Filter{Key: key("")}, false},
		{"its ID", extension.Filter{ID: "3/7-0"}, true},
		{"its event", extension.Filter{ID: "3/5-0"}, true},
		{"another ID", extension.Filter{ID: "3/6-0"}, false},
		{"since it died", extension.Filter{Since: died}, true},
		{"since later", extension.Filter{Since: died.Add(1)}, false},
		{"a part of the error", extension.Filter{Error: "no INK"}, true},
		{"a part of the reason", extension.Filter{Error: "fail"}, true},
		{"another error", extension.Filter{Error: "paper"}, false},
		{"two, of which one does not hold", extension.Filter{Key: key("ada"), Error: "paper"}, false},
	} {
		if got := tt.f.Chooses(one); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
