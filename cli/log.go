package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
)

// original is slog's default unless the program has set its own.
var original = slog.Default().Handler()

// setLogger makes the app log to stderr, unless it has a logger of its own and no flag of the log is set.
func (p *program) setLogger(c *call, reg *appview.View) error {
	s, err := reg.Settings()
	if err != nil {
		return err
	}
	if s.Logger != nil && !isOurs(s.Logger) && !c.IsSet(flagLogLevel) && !c.IsSet(flagLogFormat) {
		return nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return usagef(c, "log level %q is none of debug, info, warn, error", s.LogLevel)
	}
	var h slog.Handler
	switch strings.ToLower(s.LogFormat) {
	case "json":
		h = slog.NewJSONHandler(p.stderr, &slog.HandlerOptions{Level: level})
	case "text":
		h = newConsole(p.stderr, level)
	default:
		return usagef(c, "log format %q is neither text nor json", s.LogFormat)
	}
	reg.Override(appview.Overrides{Logger: slog.New(ours{h})})
	if p.ownsProcess && slog.Default().Handler() == original {
		slog.SetDefault(slog.New(runnel.LogHandler(h)))
	}
	return nil
}

// ours marks a logger that an earlier command gave the app, maybe with another stderr.
type ours struct{ slog.Handler }

func isOurs(l *slog.Logger) bool {
	_, ok := l.Handler().(ours)
	return ok
}

// console writes log lines for people: time, level and message, then the
// attributes in the format of slog's text handler.
type console struct {
	attrs slog.Handler // writes to out.line
	out   *consoleOut
}

type consoleOut struct {
	mu   sync.Mutex
	w    io.Writer
	line bytes.Buffer
}

func newConsole(w io.Writer, level slog.Level) *console {
	out := &consoleOut{w: w}
	return &console{out: out, attrs: slog.NewTextHandler(&out.line, &slog.HandlerOptions{Level: level})}
}

func (h *console) Enabled(ctx context.Context, l slog.Level) bool { return h.attrs.Enabled(ctx, l) }

func (h *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &console{out: h.out, attrs: h.attrs.WithAttrs(attrs)}
}

func (h *console) WithGroup(name string) slog.Handler {
	return &console{out: h.out, attrs: h.attrs.WithGroup(name)}
}

// Handle writes one line in one Write.
func (h *console) Handle(ctx context.Context, r slog.Record) error {
	bare := slog.NewRecord(time.Time{}, r.Level, "", 0)
	r.Attrs(func(a slog.Attr) bool {
		bare.AddAttrs(a)
		return true
	})
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	h.out.line.Reset()
	if err := h.attrs.Handle(ctx, bare); err != nil {
		return err
	}
	// Without a time, the text handler begins a line with exactly this.
	attrs, _ := strings.CutPrefix(h.out.line.String(), "level="+r.Level.String()+` msg=""`)
	_, err := fmt.Fprintf(h.out.w, "%s %-5s %s%s", r.Time.Format("2006-01-02 15:04:05.000"), r.Level, r.Message, attrs)
	return err
}
