package extension_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/notes"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// panics returns what fn panics with, "" if it does not.
func panics(fn func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	fn()
	return ""
}

func TestRegisterRefusesMistakes(t *testing.T) {
	app := runnel.New("shop", &runnel.Options{RedisURL: redistest.Start(t).URL()})
	t.Cleanup(func() { app.Close() })
	if text := panics(func() { extension.Register(app, notes.New()) }); text != "" {
		t.Fatal(text)
	}
	if all := extension.All(app); len(all) != 1 || all[0].Name != "notes" || !all[0].Registered {
		t.Errorf("%+v", all)
	}
	metric := &extension.Metric{Name: "a", Labels: []string{"b", "a"}}
	for _, tt := range []struct {
		app  any
		e    *extension.Extension
		want string
	}{
		{app, notes.New(), "extension notes is registered already"},
		{app, &extension.Extension{Name: "Notes"}, "a name is lower-case"},
		{app, &extension.Extension{Name: "other", Metrics: []*extension.Metric{metric}}, "not in alphabetical order"},
		{app, &extension.Extension{Name: "other", Metrics: []*extension.Metric{{}}}, "nothing gathers its metrics"},
		{"shop", notes.New(), "string is no *runnel.App"},
	} {
		if text := panics(func() { extension.Register(tt.app, tt.e) }); !strings.Contains(text, tt.want) {
			t.Errorf("got %q, want %q", text, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := app.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if text := panics(func() { extension.Register(app, &extension.Extension{Name: "late"}) }); !strings.Contains(text, "before Run") {
		t.Errorf("after Run: %q", text)
	}
}

// A known extension is one of every app that has not registered it.
func TestKnownExtensions(t *testing.T) {
	e := notes.New()
	extension.Known(e)
	if text := panics(func() { extension.Known(e) }); !strings.Contains(text, "known already") {
		t.Errorf("twice: %q", text)
	}
	if text := panics(func() { extension.Known(&extension.Extension{Name: "blind"}) }); !strings.Contains(text, "without Present") {
		t.Errorf("without Present: %q", text)
	}
	app := runnel.New("shop", &runnel.Options{RedisURL: redistest.Start(t).URL()})
	t.Cleanup(func() { app.Close() })
	if all := extension.All(app); len(all) != 1 || all[0].Registered {
		t.Errorf("%+v", all)
	}
	own := notes.New()
	own.Status = func(context.Context, *store.Client) ([]string, error) { return []string{"1", "2", "3"}, nil }
	extension.Register(app, own)
	if all := extension.All(app); len(all) != 1 || !all[0].Registered || all[0].Extension != own {
		t.Errorf("%+v", all)
	}
	if lines := extension.Status(t.Context(), app, nil)["notes"]; len(lines) != 2 {
		t.Errorf("status has the lines %q", lines)
	}
}
