package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/guesses"
	"github.com/runnel-go/runnel/internal/store"
)

// ServeHTTP serves the HTTP API of the bus. It may be mounted under a prefix with http.StripPrefix. It is of use without a worker in the same
// process, blocks until Redis has answered, and may be called concurrently. A panic of its own is logged and answered 500.
func (b *Bus) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(w, r) }

// An api is the HTTP API of a bus.
type api struct {
	*Bus
	door    *door
	mux     *http.ServeMux
	slowest claims // the slowest subscribers of full topics
}

// A route is what a method does at a path.
type route struct {
	who func(*caller) bool // may; nil: nobody is asked
	do  func(w http.ResponseWriter, r *http.Request, c *caller) error
}

func newAPI(b *Bus) *api {
	a := &api{
		Bus: b, mux: http.NewServeMux(), slowest: claims{known: map[string]claim{}},
		door: &door{opts: &b.opts, tokens: b.tokens, tries: guesses.New()},
	}
	for at, methods := range a.routes() {
		a.mux.Handle(at, a.serve(methods))
	}
	a.mux.Handle("/", a.serve(nil))
	return a
}

func (a *api) routes() map[string]map[string]route {
	subscribe := map[string]route{"POST": {subscribers, a.subscribe}}
	list := map[string]route{"GET": {anyToken, a.listSubscribers}}
	health := map[string]route{"GET": {nil, a.health}}
	return map[string]map[string]route{
		"/topics":                    {"GET": {anyToken, a.listTopics}},
		"/topics/{name}":             {"POST": {publishers, a.publish}, "DELETE": {publishersOrRoot, a.deleteTopic}},
		"/subscription":              subscribe,
		"/subscriber":                {"POST": subscribe["POST"], "DELETE": {subscribers, a.unsubscribe}},
		"/subscriber/topics/{topic}": {"DELETE": {subscribers, a.unsubscribe}},
		"/subscriptions":             list,
		"/subscribers":               list,
		"/subscribers/{name}/pause":  {"POST": {subscribers, a.pause}},
		"/subscribers/{name}/resume": {"POST": {subscribers, a.resume}},
		"/subscribers/{name}/secret": {"PUT": {subscribers, a.setSecret}},
		"/api_tokens":                {"GET": {onlyRoot, a.listTokens}, "POST": {onlyRoot, a.addToken}},
		"/api_tokens/{id}":           {"DELETE": {onlyRoot, a.removeToken}},
		"/pulse":                     {"GET": {anyToken, a.pulse}},
		"/pulse/scaling":             {"GET": {anyToken, a.scaling}},
		"/health":                    health,
		"/health/ping":               health,
	}
}

// ServeHTTP serves a request.
func (a *api) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w := &writer{ResponseWriter: out}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler { //nolint:errorlint // it is panicked as it is
			panic(v)
		}
		a.logger().Error("handler panicked", "op", r.Method+" "+r.Pattern, "kind", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		a.refuse(w, r, refusal(http.StatusInternalServerError, "internal error, which the log has"))
	}()
	if r.URL.Path != path.Clean(r.URL.Path) {
		a.refuse(w, r, errNoPath) // the mux would redirect to where it believes to be
		return
	}
	a.mux.ServeHTTP(w, r)
}

var errNoPath = refusal(http.StatusNotFound, "there is no such path")

// serve returns the handler of a path.
func (a *api) serve(methods map[string]route) http.Handler {
	allowed := slices.Sorted(maps.Keys(methods))
	if methods["GET"].do != nil {
		allowed = append(allowed, "HEAD")
	}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w := out.(*writer)
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route, ok := methods[method]
		err := errNoPath
		switch {
		case ok:
			err = a.call(w, r, route)
		case methods != nil:
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			err = refusal(http.StatusMethodNotAllowed, "this path knows "+strings.Join(allowed, ", "))
		}
		if err != nil {
			a.refuse(w, r, err)
		}
	})
}

// call lets a request in and does what it asks for.
func (a *api) call(w *writer, r *http.Request, route route) error {
	if route.who == nil {
		return route.do(w, r, nil)
	}
	if err := a.door.secure(r); err != nil {
		return err
	}
	c, err := a.door.admit(r)
	if err == nil && !route.who(c) {
		err = refusal(http.StatusForbidden, "this token has no role that may do this")
	}
	if err == nil {
		err = a.ready(r.Context())
	}
	if err == nil {
		err = route.do(w, r, c)
	}
	if r.Pattern == "/pulse" && err != nil && away(err) {
		err = refusal(http.StatusInternalServerError, "Redis is not available")
	}
	return err
}

// logger returns where the bus logs.
func (a *api) logger() *slog.Logger {
	if a.begin() != nil {
		return slog.New(slog.DiscardHandler)
	}
	return a.log
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

func done(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
