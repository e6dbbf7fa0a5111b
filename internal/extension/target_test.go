package extension_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/notes"
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

// A rule is called absent only where its stream has no such part for sure.
func TestRecognizeRulesOfParts(t *testing.T) {
	app := runnel.New("shop", nil)
	t.Cleanup(func() { app.Close() })
	e := notes.New()
	there := e.Targets
	e.Targets = func(ctx context.Context, c *store.Client, owner string) ([]extension.Target, error) {
		if owner == "broken" {
			return nil, errors.New("no answer")
		}
		return there(ctx, c, owner)
	}
	extension.Register(app, e)
	state := &inspect.AppState{}
	for _, scope := range []string{"processor:board/pins", "partition:board/pins/3", "processor:board/wall", "processor:other/pins", "processor:broken/pins", "stream:gone"} {
		state.Rules = append(state.Rules, inspect.RuleState{Kind: "pause", Scope: scope})
	}
	if err := extension.Recognize(t.Context(), app, nil, state); err == nil || err.Error() != "extension notes: no answer" {
		t.Errorf("error %v", err)
	}
	var absent []string
	for _, r := range state.Stops() {
		if r.Absent {
			absent = append(absent, r.Scope)
		}
	}
	if want := []string{"processor:board/wall", "processor:other/pins", "stream:gone"}; !slices.Equal(absent, want) {
		t.Errorf("absent %q, want %q", absent, want)
	}
}
