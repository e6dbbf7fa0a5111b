package extension

import (
	"context"
	"net/url"

	"github.com/runnel-go/runnel/internal/store"
)

// A Page is a page of the dashboard. Its address is #/<extension>.
type Page struct {
	Title string // in the menu
	// Module is a JavaScript module that exports the component View, as the pages of the dashboard do; it
	// imports them and their libraries from "../".
	Module []byte
	// Reads are served at /api/<extension>/<name>, with the parameters of the request. The answer is JSON.
	Reads map[string]func(ctx context.Context, c *store.Client, q url.Values) (any, error)
	// Actions are requested as <extension>/<name>, with the token, and audited. body is the JSON of the request,
	// whose field "on" names what it acts on; what an action returns is shown and audited as its result.
	Actions map[string]func(ctx context.Context, c *store.Client, body []byte) (string, error)
}
