package middleware

import (
	"context"
	"log/slog"
	"time"

	"github.com/runnel-go/runnel"
)

// Log logs every iteration, with its number of events and its duration: at Info, or at
// Error if there is an error, with the error. The lines carry worker, stream, processor,
// partition and the first event's ID (runnel.LogHandler). A nil logger is slog.Default.
func Log(logger *slog.Logger) runnel.Middleware {
	if logger != nil {
		logger = scoped(logger)
	}
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			began := time.Now()
			err := next(ctx, b)
			l := logger
			if l == nil {
				l = scoped(slog.Default()) // not at registration: main may set it later
			}
			attrs := []slog.Attr{slog.Int("events", len(b.Events)), slog.Duration("after", time.Since(began))}
			if err == nil {
				l.LogAttrs(ctx, slog.LevelInfo, "processed", attrs...)
				return nil
			}
			attrs = append(attrs, slog.Int("failed", len(b.Failed(err))), slog.Any("err", err))
			l.LogAttrs(ctx, slog.LevelError, "not processed", attrs...)
			return err
		}
	}
}

func scoped(l *slog.Logger) *slog.Logger { return slog.New(runnel.LogHandler(l.Handler())) }
