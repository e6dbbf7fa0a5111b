package webhook

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"

	"github.com/runnel-go/runnel/internal/guesses"
	"github.com/runnel-go/runnel/internal/store"
)

// ServeHTTP serves the HTTP API of the bus. It may be mounted under a prefix with http.StripPrefix. It is of use without a worker in the same
// process, blocks until Redis has answered, and may be called concurrently. A panic of its own is logged and answered 500.
func (b *Bus) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(w, r) }

// An api is the HTTP API of a bus.
type api struct {
	*Bus
	mux     http.ServeMux
	tries   *guesses.Guard // of tokens
	cross   http.CrossOriginProtection
	slowest recent[string] // subscribers of full topics
}

// A route is what a method does at a path.
type route struct {
	at  string             // as http.ServeMux has it
	who func(*caller) bool // may; nil: nobody is asked
	do  func(w http.ResponseWriter, r *http.Request, c *caller) error
}

func newAPI(b *Bus) *api {
	a := &api{Bus: b, tries: guesses.New()}
	for _, one := range []route{
		{"GET /topics", anyToken, a.listTopics},
		{"POST /topics/{name}", publishers, a.publish},
		{"DELETE /topics/{name}", publishersOrRoot, a.deleteTopic},
		{"POST /subscription", subscribers, own(a.subscribe)},
		{"POST /subscriber", subscribers, own(a.subscribe)},
		{"DELETE /subscriber", subscribers, own(a.unsubscribe)},
		{"DELETE /subscriber/topics/{topic}", subscribers, own(a.unsubscribe)},
		{"GET /subscriptions", anyToken, a.listSubscribers},
		{"GET /subscribers", anyToken, a.listSubscribers},
		{"POST /subscribers/{name}/pause", subscribers, own(a.pause)},
		{"POST /subscribers/{name}/resume", subscribers, own(a.resume)},
		{"PUT /subscribers/{name}/secret", subscribers, own(a.setSecret)},
		{"GET /api_tokens", onlyRoot, a.listTokens},
		{"POST /api_tokens", onlyRoot, a.makeToken},
		{"DELETE /api_tokens/{id}", onlyRoot, a.deleteToken},
		{"GET /pulse", anyToken, a.pulse},
		{"GET /pulse/scaling", anyToken, a.scaling},
		{"GET /health", nil, a.health},
		{"GET /health/ping", nil, a.health},
	} {
		a.mux.HandleFunc(one.at, func(w http.ResponseWriter, r *http.Request) {
			if err := a.call(w, r, one); err != nil {
				a.refuse(w.(*writer), r, err)
			}
		})
	}
	return a
}

// ServeHTTP serves a request.
func (a *api) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w := &writer{ResponseWriter: out}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_ = a.begin() // so that there is a log; its error comes again
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			a.log.Error("handler panicked", "op", r.Method+" "+r.Pattern, "kind", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			a.refuse(w, r, errInternal)
		}
	}()
	knows := func(method string) bool { // the mux would redirect from paths that are not clean, to where it believes to be
		_, pattern := a.mux.Handler(&http.Request{Method: method, URL: r.URL})
		return pattern != "" && r.URL.Path == path.Clean(r.URL.Path)
	}
	if knows(r.Method) {
		a.mux.ServeHTTP(w, r)
		return
	}
	err := refusal(http.StatusNotFound, "there is no such path")
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
		if knows(method) {
			h.Add("Allow", method)
			err = refusal(http.StatusMethodNotAllowed, "this path does not know "+r.Method)
		}
	}
	a.refuse(w, r, err)
}

// call lets a request in and does what it asks for.
func (a *api) call(w http.ResponseWriter, r *http.Request, one route) error {
	if one.who == nil {
		return one.do(w, r, nil)
	}
	c, err := a.admit(r)
	if err == nil && !one.who(c) {
		err = refusal(http.StatusForbidden, "this token has no role that may do this")
	}
	if err == nil {
		err = a.ready(r.Context())
	}
	if err == nil {
		err = one.do(w, r, c)
	}
	return err
}

// deed does something. If root does it the audit stream has it.
func (a *api) deed(r *http.Request, c *caller, what, on string, do func(context.Context) error) error {
	if !c.root {
		return do(r.Context())
	}
	_, unnoted, err := a.calls.Client().Audited(r.Context(), store.Audit{
		Who: c.client, From: c.from, What: "webhook/" + what, On: a.name + "/" + on,
	}, func(ctx context.Context) (string, error) { return "", do(ctx) })
	if err == nil && unnoted != nil {
		a.log.Error("outcome is not in the audit", "op", what, "err", unnoted)
	}
	return err
}
