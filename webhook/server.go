package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/guesses"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
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

// A call is a request of a client that may make it.
type call struct {
	*http.Request
	header http.Header // of the answer
	code   int         // of the answer, 0: the usual one

	client string // "root" for root
	roles  []Role
	from   string // its address
	on     string // the topic, client or token that it is about, if its path has one
}

// A route is what a method does at a path. Without a result the answer is 204.
type route struct {
	at  string // as http.ServeMux has it
	who string // roles that may; "": no token is asked for
	do  func(c *call) (result any, err error)
}

func newAPI(b *Bus) *api {
	a := &api{Bus: b, tries: guesses.New()}
	for _, one := range []route{
		{"GET /topics", anyRole, a.listTopics},
		{"POST /topics/{name}", RolePublish, a.publish},
		{"DELETE /topics/{name}", "publish root", a.deleteTopic},
		{"POST /subscription", subscribers, a.subscribe},
		{"POST /subscriber", subscribers, a.subscribe},
		{"DELETE /subscriber", subscribers, a.unsubscribe},
		{"DELETE /subscriber/topics/{topic}", subscribers, a.unsubscribe},
		{"GET /subscriptions", anyRole, a.listSubscribers},
		{"GET /subscribers", anyRole, a.listSubscribers},
		{"POST /subscribers/{name}/pause", subscribers, a.pause},
		{"POST /subscribers/{name}/resume", subscribers, a.resume},
		{"PUT /subscribers/{name}/secret", subscribers, a.setSecret},
		{"GET /api_tokens", roleRoot, a.listTokens},
		{"POST /api_tokens", roleRoot, a.makeToken},
		{"DELETE /api_tokens/{id}", roleRoot, a.deleteToken},
		{"GET /pulse", anyRole, a.pulse},
		{"GET /pulse/scaling", anyRole, a.scaling},
		{"GET /health", "", health},
		{"GET /health/ping", "", health},
	} {
		a.mux.HandleFunc(one.at, func(w http.ResponseWriter, r *http.Request) {
			c := &call{Request: r, header: w.Header(), on: r.PathValue("name")}
			switch result, err := a.do(c, one); {
			case err != nil:
				a.refuse(w, r, err)
			case result == nil:
				w.WriteHeader(http.StatusNoContent)
			default:
				reply(w, cmp.Or(c.code, http.StatusOK), result)
			}
		})
	}
	return a
}

// do lets a call in, and does what it asks for.
func (a *api) do(c *call, one route) (result any, err error) {
	if one.who != "" {
		if err = a.admit(c, one.who); err == nil {
			err = a.ready(c.Context())
		}
	}
	if err == nil {
		result, err = one.do(c)
	}
	return result, err
}

// ServeHTTP serves a request.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
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
	err := a.begin()
	if err == nil {
		// The mux would redirect from paths that are not clean, to where it believes to be.
		if _, pattern := a.mux.Handler(r); pattern != "" && r.URL.Path == path.Clean(r.URL.Path) {
			a.mux.ServeHTTP(w, r)
			return
		}
		err = refusef(http.StatusNotFound, "there is no such path")
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
			if _, pattern := a.mux.Handler(&http.Request{Method: method, URL: r.URL}); pattern != "" && r.URL.Path == path.Clean(r.URL.Path) {
				h.Add("Allow", method)
				err = refusef(http.StatusMethodNotAllowed, "this path does not know %s", r.Method)
			}
		}
	}
	a.refuse(w, r, err)
}

// deed reads the fields of a call, and does something. If root does it the audit stream has it.
func (a *api) deed(c *call, what string, into map[string]any, do func(context.Context) error) error {
	if err := read(c.Request, into); err != nil {
		return err
	}
	if !c.is(roleRoot) {
		return do(c.Context())
	}
	_, unnoted, err := a.calls.Client().Audited(c.Context(), store.Audit{
		Who: c.client, From: c.from, What: "webhook/" + what, On: a.name + "/" + c.on,
	}, func(ctx context.Context) (string, error) { return "", do(ctx) })
	if err == nil && unnoted != nil {
		a.log.Error("outcome is not in the audit", "op", what, "err", unnoted)
	}
	return err
}

// A refusal is an error that knows how the HTTP API answers it.
type refusal struct {
	code int
	text string
}

func (e *refusal) Error() string { return e.text }

func refusef(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// invalidf returns what is wrong with what was given.
func invalidf(format string, args ...any) error {
	return refusef(http.StatusBadRequest, format, args...)
}

var errInternal = refusef(http.StatusInternalServerError, "internal error, which the log has")

// reply answers with JSON.
func reply(w http.ResponseWriter, code int, v any) {
	text, _ := encode(v) // texts, numbers and times
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // the other side has gone
}

// refuse answers with an error. What is not expected is logged, and not shown.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code, text := explain(err)
	if text == errInternal.Error() && err != errInternal && r.Context().Err() == nil {
		a.log.Error("request failed", "op", r.Method+" "+r.Pattern, "err", err)
	}
	switch code {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="`+a.name+`"`)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(int(guesses.Window.Seconds())))
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
		if r.Pattern == "GET /pulse" {
			code = http.StatusInternalServerError
		}
	}
	reply(w, code, map[string]string{"error": text})
}

// explain returns the answer to an error. Errors of Redis, and those that should not happen, are not shown.
func explain(err error) (code int, text string) {
	var known *refusal
	var sent *runnel.SendError
	switch {
	case errors.As(err, &known):
		return known.code, err.Error()
	case errors.Is(err, ErrNoSubscriber):
		return http.StatusNotFound, err.Error()
	case errors.Is(err, iwebhook.ErrConflict):
		return http.StatusConflict, "others change the same thing: try again"
	case !away(err):
		return explain(errInternal)
	case errors.As(err, &sent) && sent.Failed[0].Unknown, errors.Is(err, redisconn.ErrUnknownOutcome):
		return http.StatusServiceUnavailable, "Redis has not answered: it may be done. It can be done again, and an event with an Idempotency-Key"
	}
	return http.StatusServiceUnavailable, "Redis is not available"
}

// away reports whether Redis may do later what it has not done now.
func away(err error) bool {
	return redisconn.Unavailable(err) || errors.Is(err, redisconn.ErrNotReplicated) || errors.Is(err, context.Canceled) ||
		redisconn.ReplyHas(err, "OOM ", "READONLY ", "MISCONF ", "NOREPLICAS ")
}
