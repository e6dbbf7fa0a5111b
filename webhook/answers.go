package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/guesses"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// An httpError is an answer that refuses.
type httpError struct {
	code int
	text string
}

func (e *httpError) Error() string { return e.text }

func refusal(code int, text string) *httpError { return &httpError{code, text} }

var errInternal = refusal(http.StatusInternalServerError, "internal error, which the log has")

// A writer is what an answer is written to.
type writer struct {
	http.ResponseWriter
	began bool
}

func (w *writer) Write(p []byte) (int, error) {
	w.began = true
	return w.ResponseWriter.Write(p)
}

// done answers that something is done, without saying more.
func done(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// reply answers with JSON.
func reply(w http.ResponseWriter, code int, v any) error {
	text, err := encode(v)
	if err == nil {
		w.WriteHeader(code)
		_, _ = w.Write(append(text, '\n')) // the other side has gone
	}
	return err
}

// refuse answers with an error. What nobody expects is logged, and not shown.
func (a *api) refuse(w *writer, r *http.Request, err error) {
	code, text := explain(err)
	if code == http.StatusInternalServerError && !errors.Is(err, errInternal) && r.Context().Err() == nil {
		a.log.Error("request failed", "op", r.Method+" "+r.Pattern, "err", err)
	}
	if w.began { // some rows are on their way
		panic(http.ErrAbortHandler)
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
	_ = reply(w, code, map[string]string{"error": text})
}

// refusals are answers to errors: with their own text, or another one.
var refusals = []struct {
	err  error
	code int
	text string
}{
	{ErrClaimed, http.StatusForbidden, ""},
	{ErrNoTopic, http.StatusNotFound, ""},
	{ErrNoSubscriber, http.StatusNotFound, ""},
	{ErrTokenExists, http.StatusConflict, ""},
	{iwebhook.ErrConflict, http.StatusConflict, "others change the same thing: try again"},
	{store.ErrStreamFull, http.StatusServiceUnavailable, "the topic is full"},
}

// explain returns the answer to an error. Errors of Redis, and those that should not happen, are not shown.
func explain(err error) (code int, text string) {
	var known *httpError
	var invalid *invalidError
	var sent *runnel.SendError
	switch {
	case errors.As(err, &known):
		return known.code, known.text
	case errors.As(err, &invalid):
		return http.StatusBadRequest, err.Error()
	}
	for _, one := range refusals {
		if errors.Is(err, one.err) {
			return one.code, cmp.Or(one.text, err.Error())
		}
	}
	switch {
	case !away(err):
		return errInternal.code, errInternal.text
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
