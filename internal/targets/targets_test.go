package targets_test

import (
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/targets"
	"github.com/runnel-go/runnel/internal/test/notes"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestFind(t *testing.T) {
	app := runnel.New("shop", &runnel.Options{RedisURL: redistest.Start(t).URL()})
	t.Cleanup(func() { app.Close() })
	c, err := appview.Of(app).Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.EnsureMeta(t.Context(), "board", store.Meta{Partitions: 2, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: []string{"keeper"}}); err != nil {
		t.Fatal(err)
	}
	find := func(part string) *extension.Target {
		t.Helper()
		target, err := targets.Find(t.Context(), app, c, admin.New(app), "board", part)
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	if target := find("pins"); !targets.OfCore(target) {
		t.Errorf("without extensions: %+v", target)
	}
	extension.Register(app, notes.New())
	for _, tt := range []struct {
		part, processor, noun string
		core, parks           bool
	}{
		{"keeper", "keeper", "event", true, true},
		{"pins", "keeper", "note", false, false},
		{"wall", "wall", "event", true, true}, // a processor that is gone may have left dead letters
	} {
		got := find(tt.part)
		if got.Part != tt.part || got.Processor != tt.processor || got.Noun != tt.noun || targets.OfCore(got) != tt.core || (got.Parked != nil) != tt.parks || got.Dead == nil {
			t.Errorf("%s: %+v", tt.part, got)
		}
	}
	if _, err := targets.Chosen(t.Context(), find("wall").Dead, extension.Filter{}); err == nil {
		t.Error("a processor that never was has a list of dead letters")
	}
	if all, err := targets.Chosen(t.Context(), find("keeper").Parked, extension.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
