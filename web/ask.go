package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/guesses"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	maxAsks     = 4 // lists read concurrently
	askPatience = 15 * time.Second
	listed      = 100 // by default
	mostListed  = 500
)

// A requestError is an error of the request, not of Redis.
type requestError struct {
	code int
	text string
}

func (e *requestError) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &requestError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &requestError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

type lister func(ctx context.Context, c *store.Client, r *http.Request) (any, error)

// ask returns a handler for lists, which serves a few at a time.
func (d *dashboard) ask(list lister) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askPatience)
		defer cancel()
		// The server's own limits may be shorter. Even its limit for reading would cancel the
		// request.
		rc, limit := http.NewResponseController(w), time.Now().Add(askPatience+writePatience)
		rc.SetReadDeadline(limit)
		rc.SetWriteDeadline(limit)
		select {
		case d.asks <- struct{}{}:
			defer func() { <-d.asks }()
		case <-ctx.Done():
			refuse(w, http.StatusServiceUnavailable, errors.New("too many requests at a time"))
			return
		}
		c, err := d.reg.Client()
		if err == nil {
			var v any
			if v, err = list(ctx, c, r); err == nil {
				answer(w, http.StatusOK, v)
				return
			}
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = &requestError{http.StatusGatewayTimeout, "it takes too long: narrow it down, to a partition for example"}
		}
		refuse(w, codeOf(err), err)
	}
}

func codeOf(err error) int {
	var bad *requestError
	if errors.As(err, &bad) {
		return bad.code
	}
	var (
		several *admin.AmbiguousError
		missing *admin.NotFoundError
		free    *admin.NotQuarantinedError
		beyond  *admin.PartitionError
	)
	switch {
	case errors.As(err, &several), errors.As(err, &beyond), errors.As(err, new(*extension.UsageError)):
		return http.StatusBadRequest
	case errors.As(err, &missing):
		return http.StatusNotFound
	case errors.As(err, &free):
		return http.StatusConflict
	}
	return http.StatusBadGateway // Redis
}

func answer(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		code, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	w.Write(body)
}

func refuse(w http.ResponseWriter, code int, err error) {
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(int(guesses.Window.Seconds())))
	}
	answer(w, code, struct {
		Error string `json:"error"`
	}{err.Error()})
}

func streamOf(ctx context.Context, c *store.Client, stream string) (store.Meta, error) {
	if stream == "" {
		return store.Meta{}, badRequest("which stream?")
	}
	m, ok, err := c.LoadMeta(ctx, stream)
	if err == nil && !ok {
		err = notFound("there is no stream %q", stream)
	}
	return m, err
}

type ask struct {
	stream     string
	meta       store.Meta
	partitions []int
	limit      int
}

func askOf(ctx context.Context, c *store.Client, r *http.Request) (*ask, error) {
	a := &ask{stream: r.URL.Query().Get("stream")}
	var err, limitErr error
	if a.meta, err = streamOf(ctx, c, a.stream); err != nil {
		return nil, err
	}
	a.partitions, err = partitionsOf(r, a.meta)
	a.limit, limitErr = limitOf(r)
	return a, errors.Join(err, limitErr)
}

type place struct {
	stream, processor string
	meta              store.Meta
}

func placeOf(ctx context.Context, c *store.Client, text string) (place, error) {
	p := place{}
	var err error
	if p.stream, p.processor, err = processorIn(text); err != nil {
		return p, err
	}
	if p.meta, err = streamOf(ctx, c, p.stream); err != nil {
		return p, err
	}
	if !slices.Contains(p.meta.Processors, p.processor) {
		return p, notFound("stream %s has no processor %q", p.stream, p.processor)
	}
	return p, nil
}

// idOf returns the requested entry ID of an event, or ID of a dead letter, "" for none.
// partitionsOf returns its partition.
func idOf(r *http.Request) string {
	_, id, _ := entryid.ParseEventID(r.URL.Query().Get("id"))
	return id
}

// partitionsOf returns the requested partitions: one, or all.
func partitionsOf(r *http.Request, meta store.Meta) ([]int, error) {
	text := r.URL.Query().Get("partition")
	if id := r.URL.Query().Get("id"); id != "" {
		n, _, ok := entryid.ParseEventID(id)
		if !ok {
			return nil, badRequest("%q is no event, such as 3/1767225600000-0", id)
		}
		text = strconv.Itoa(n)
	}
	if text == "" {
		return meta.Numbers(), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= meta.Partitions {
		return nil, notFound("there is no partition %q: there are %d, from 0 on", text, meta.Partitions)
	}
	return []int{n}, nil
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return listed, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostListed {
		return 0, badRequest("limit is a number from 1 to %d", mostListed)
	}
	return n, nil
}

// keyOf returns the requested key, nil for any; "" is a key, too.
func keyOf(r *http.Request) *string {
	if q := r.URL.Query(); q.Has("key") {
		key := q.Get("key")
		return &key
	}
	return nil
}
