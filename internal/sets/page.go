package sets

import (
	"context"
	_ "embed"
	"net/url"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

//go:embed page.js
var module []byte

// pageBytes bounds the entity that the page shows as JSON.
const pageBytes = 256 << 10

// page is the page of the dashboard. Its rows pause stages, and retry visits, by the actions of the core.
func page(p Process) *extension.Page {
	out := extension.NewPage("Sets", module, commands(p), "ls", "touch", "visit")
	out.Reads["entity"] = func(ctx context.Context, c *store.Client, q url.Values) (any, error) {
		s, err := one(ctx, c, p, q.Get("set"))
		if err != nil {
			return nil, err
		}
		e, err := s.show(ctx, q.Get("id"), pageBytes)
		if err != nil {
			return nil, err
		}
		text := string(e.Value) // a page that parsed it would round numbers
		e.Value = nil
		return shown{e, text}, nil
	}
	return out
}

// A shown is an entity as the page shows it.
type shown struct {
	*EntityState
	Text string // of Value
}
