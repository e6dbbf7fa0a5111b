package webhook

import (
	"context"
	"errors"
	"net/http"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// An httpError is an answer that refuses.
type httpError struct {
	code  int
	text  string
	after string // Retry-After
}

func (e *httpError) Error() string { return e.text }

func refusal(code int, text string) error { return &httpError{code: code, text: text} }

func unavailable(text string) *httpError {
	return &httpError{http.StatusServiceUnavailable, text, "1"}
}

// A writer is what an answer is written to.
type writer struct {
	http.ResponseWriter
	began bool
}

func (w *writer) WriteHeader(code int) {
	w.began = true
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(p []byte) (int, error) {
	w.began = true
	return w.ResponseWriter.Write(p)
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
	e := explain(err)
	if e == nil {
		if r.Context().Err() == nil {
			a.logger().Error("request failed", "op", r.Method+" "+r.Pattern, "err", err)
		}
		e = &httpError{code: http.StatusInternalServerError, text: "internal error, which the log has"}
	}
	if w.began { // some rows are on their way
		panic(http.ErrAbortHandler)
	}
	if e.after != "" {
		w.Header().Set("Retry-After", e.after)
	}
	if e.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="`+a.name+`"`)
	}
	_ = reply(w, e.code, map[string]string{"error": e.text})
}

// explain returns the answer to an error, nil if it should not happen. Errors of Redis are not shown.
func explain(err error) *httpError {
	var known *httpError
	var invalid *invalidError
	var sent *runnel.SendError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &invalid):
		return &httpError{code: http.StatusBadRequest, text: err.Error()}
	case errors.Is(err, ErrClaimed):
		return &httpError{code: http.StatusForbidden, text: err.Error()}
	case errors.Is(err, ErrNoTopic), errors.Is(err, ErrNoSubscriber):
		return &httpError{code: http.StatusNotFound, text: err.Error()}
	case errors.Is(err, ErrTokenExists):
		return &httpError{code: http.StatusConflict, text: ErrTokenExists.Error()}
	case errors.Is(err, iwebhook.ErrConflict):
		return &httpError{code: http.StatusConflict, text: "others change the same thing: try again"}
	case errors.Is(err, store.ErrStreamFull):
		return unavailable("the topic is full")
	case !away(err):
		return nil
	case errors.As(err, &sent) && sent.Failed[0].Unknown:
		return unavailable("Redis has not answered: it may be published. With an Idempotency-Key it can be sent again")
	case errors.As(err, &sent):
		return unavailable("Redis is not available: nothing is published")
	case errors.Is(err, redisconn.ErrUnknownOutcome):
		return unavailable("Redis has not answered: it may be done. It can be done again")
	}
	return unavailable("Redis is not available")
}

// away reports whether Redis may do later what it has not done now.
func away(err error) bool {
	return redisconn.Unavailable(err) || redisconn.ReplyHas(err, "OOM ", "READONLY ", "MISCONF ", "NOREPLICAS ") ||
		errors.Is(err, redisconn.ErrNotReplicated) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
