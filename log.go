package runnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
)

// scope is the origin of a log line of a user's function.
type scope struct {
	app, worker, stream, processor string
	in                             *App // nil for a task
	partition                      int
	event                          atomic.Pointer[Event] // first of the current batch, nil between iterations
	atomic                         *atomicState          // nil unless the processor is Atomic
}

type scopeKey struct{}

// unscoped returns ctx for the framework's own lines about an event. Values of
// middleware, such as a trace, are kept; the scope is not, as these lines have their
// origin already.
func unscoped(ctx context.Context) context.Context { return context.WithValue(ctx, scopeKey{}, nil) }

// LogHandler returns a slog.Handler that passes every line on to h. To the lines that a
// processor logs with its iteration's context it adds worker, stream, processor,
// partition and event ("partition/entry ID"; of a batch the first). A Handler that does
// so already is returned as it is.
func LogHandler(h slog.Handler) slog.Handler {
	if _, ok := h.(logHandler); ok {
		return h
	}
	return logHandler{h}
}

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if sc, ok := ctx.Value(scopeKey{}).(*scope); ok {
		r = r.Clone()
		r.AddAttrs(slog.String("worker", sc.worker), slog.String("stream", sc.stream),
			slog.String("processor", sc.processor), slog.Int("partition", sc.partition))
		if e := sc.event.Load(); e != nil {
			r.AddAttrs(slog.String("event", e.name()))
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// logger returns the framework's logger.
func (o *Options) logger() (*slog.Logger, error) {
	if o.Logger != nil {
		return o.Logger, nil
	}
	return newLogger(os.Stderr, o.LogLevel, o.LogFormat)
}

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	if err := checkLogLevel(level); err != nil {
		return nil, fmt.Errorf("log level %q: %w", level, err)
	}
	if err := checkLogFormat(format); err != nil {
		return nil, fmt.Errorf("log format %q: %w", format, err)
	}
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // checked before
	ho := &slog.HandlerOptions{Level: l}
	if strings.EqualFold(format, "json") {
		return slog.New(slog.NewJSONHandler(w, ho)), nil
	}
	return slog.New(slog.NewTextHandler(w, ho)), nil
}

func checkLogLevel(name string) error {
	var l slog.Level
	if l.UnmarshalText([]byte(name)) != nil {
		return errors.New(`not "debug", "info", "warn" or "error"`)
	}
	return nil
}

func checkLogFormat(name string) error {
	if !strings.EqualFold(name, "text") && !strings.EqualFold(name, "json") {
		return errors.New(`neither "text" nor "json"`)
	}
	return nil
}
