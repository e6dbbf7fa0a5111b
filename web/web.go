// Package web is the dashboard of an app, for the browser: streams and processors, the owner and lag
// of each partition, events, dead letters, parked and delayed events, and rules.
//
//	app := runnel.New("shop", nil)
//	http.Handle("/dashboard/", http.StripPrefix("/dashboard", web.Handler(app, nil)))
//
// The command dashboard of package cli serves it. The dashboard only reads, unless
// Options.AllowActions is set. At metrics it serves the metrics of the app as a whole, as
// [metrics.OverviewHandler] does. Every client that reaches the dashboard can read the events: serve
// it on the loopback, or behind a proxy that authenticates. docs/operating.md has more.
package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/metrics"
)

// Options configure the dashboard; a zero field is its default.
type Options struct {
	// Every is how often the dashboard looks at the app while pages are open; all pages share the
	// looks. Default 2 s, at least 500 ms.
	Every time.Duration
	// CountAtMost bounds how many entries of a partition are counted one by one if Redis does not
	// know the lag. Default 1000.
	CountAtMost int64
	// AllowActions permits clients with the Token to pause, replay, drop and so on. Without it
	// nothing can be changed.
	AllowActions bool
	// Token authorizes actions: at least 16 printable ASCII characters, no space at either end.
	Token string
	// Hosts are the host names, without a port, under which the dashboard is served. Requests for
	// other names are refused, so that a foreign page cannot reach the dashboard by pointing a name
	// of its own here. Default all.
	Hosts []string
}

// DefaultEvery and DefaultCountAtMost are the defaults of Options; MinToken is the minimal length
// of a Token.
const (
	DefaultEvery       = 2 * time.Second
	DefaultCountAtMost = 1000
	MinToken           = 16

	minEvery = 500 * time.Millisecond
)

// sendable matches the values that a request header may have.
var sendable = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)

// Check returns an error if the options are invalid; nil options are all defaults.
func (o *Options) Check() error {
	switch {
	case o == nil:
		return nil
	case o.AllowActions && o.Token == "":
		return fmt.Errorf("actions need a token")
	case o.AllowActions && len(o.Token) < MinToken:
		return fmt.Errorf("the token for actions has %d characters, at least %d are needed", len(o.Token), MinToken)
	case o.AllowActions && !sendable.MatchString(o.Token):
		return fmt.Errorf("the token for actions has more than letters, digits and signs of ASCII, or a space at its ends: no browser could send it")
	case o.Every != 0 && o.Every < minEvery:
		return fmt.Errorf("looking every %v is too often: at least %v", o.Every, minEvery)
	}
	return nil
}

// Handler serves the dashboard of an app. Call it after all is registered. It panics if Options.Check returns an error. The handler
// does nothing while no page is open, and needs no close. Streams of events to browsers end when
// their http.Server is shut down. A nil opts is all defaults.
func Handler(app *runnel.App, opts *Options) http.Handler {
	if err := opts.Check(); err != nil {
		panic("web: " + err.Error())
	}
	d := &dashboard{app: app.Name(), own: app, reg: appview.Of(app), admin: admin.New(app)}
	if opts != nil {
		d.opts = *opts
	}
	d.opts.Every = cmp.Or(d.opts.Every, DefaultEvery)
	d.opts.CountAtMost = cmp.Or(d.opts.CountAtMost, DefaultCountAtMost)
	d.hub = newHub(d.opts.Every, d.look)
	d.guard = newGuard(d.opts)
	d.asks = make(chan struct{}, maxAsks)
	d.metrics = metrics.OverviewHandler(app, &metrics.Options{CountAtMost: d.opts.CountAtMost})
	d.mux = d.routes()
	return d
}

type dashboard struct {
	app      string
	own      *runnel.App // for its extensions
	reg      *appview.View
	admin    *admin.Client
	opts     Options
	hub      *hub
	guard    *guard
	ends     ends
	decoding sync.Mutex // held while a record is decoded

	asks  chan struct{}  // requests under way for lists from Redis
	watch *inspect.Watch // of the looking watcher

	metrics http.Handler
	mux     *http.ServeMux
}

func (d *dashboard) routes() *http.ServeMux {
	m := http.NewServeMux()
	files := embeddedAssets()
	for name, page := range d.pages() {
		files["extension/"+name+".js"] = newAsset(name+".js", page.Module)
		for read, list := range page.Reads {
			m.HandleFunc("GET /api/"+name+"/"+read, d.ask(func(ctx context.Context, c *store.Client, r *http.Request) (any, error) {
				return list(ctx, c, r.URL.Query())
			}))
		}
	}
	m.HandleFunc("GET /assets/extensions.js", d.extensionPages)
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { files.serve(w, r, "index.html") })
	m.HandleFunc("GET /assets/{path...}", func(w http.ResponseWriter, r *http.Request) { files.serve(w, r, r.PathValue("path")) })
	m.HandleFunc("GET /api/live", d.live)
	m.Handle("GET /metrics", d.metrics)
	for path, list := range map[string]lister{
		"events": d.events, "dead": d.ofPart(deadAt, d.dead), "parked": d.ofPart(parkedAt, d.parked), "delayed": d.delayed, "audit": d.audit, "tables": d.tables,
	} {
		m.HandleFunc("GET /api/"+path, d.ask(list))
	}
	if d.opts.AllowActions {
		m.HandleFunc("POST /api/token", d.token)
		m.HandleFunc("POST /api/actions/{name}", d.act)
		m.HandleFunc("POST /api/actions/{extension}/{name}", d.actExtension)
	}
	return m
}

func (d *dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	switch {
	case !d.guard.knows(r.Host):
		refuse(w, http.StatusMisdirectedRequest, fmt.Errorf("the dashboard is not served as %q", r.Host))
	case r.URL.Path == "":
		toDirectory(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/") && isForeign(r):
		refuse(w, http.StatusForbidden, errForeign)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !d.opts.AllowActions:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, fmt.Errorf("this dashboard only reads"))
	default:
		d.mux.ServeHTTP(w, r)
	}
}
