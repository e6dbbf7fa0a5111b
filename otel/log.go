package runnelotel

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// LogHandler returns a slog.Handler that passes all lines on to next. It adds trace_id and span_id,
// outside of all groups, to lines logged under the context of a span, sampled or not. If next is such
// a handler already, LogHandler returns next.
//
// In runnel.Options.Logger it also adds the trace of a failed event to Runnel's own lines.
func LogHandler(next slog.Handler) slog.Handler {
	if h, ok := next.(logHandler); ok {
		return h
	}
	return logHandler{Handler: next, base: next}
}

type logHandler struct {
	slog.Handler              // with everything
	base         slog.Handler // before the first group
	groups       []func(slog.Handler) slog.Handler
}

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	ids := []slog.Attr{slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String())}
	if len(h.groups) == 0 {
		r = r.Clone()
		r.AddAttrs(ids...)
		return h.Handler.Handle(ctx, r)
	}
	to := h.base.WithAttrs(ids)
	for _, next := range h.groups {
		to = next(to)
	}
	return to.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(h.groups) == 0 {
		with := h.Handler.WithAttrs(attrs)
		return logHandler{Handler: with, base: with}
	}
	return h.then(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.then(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

// then returns h with one more step after its base.
func (h logHandler) then(step func(slog.Handler) slog.Handler) logHandler {
	return logHandler{Handler: step(h.Handler), base: h.base, groups: append(h.groups[:len(h.groups):len(h.groups)], step)}
}
