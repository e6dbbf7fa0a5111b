package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/store"
)

// pinned is for how long a pin counts whose subscription is not stored yet.
const pinned = time.Minute

// Pin returns a span from the end of a log on, and has the log keep what comes behind it for a subscriber: for a minute, or longer if Change
// stores settings with the span. Each call makes a pin of its own, so that what becomes of one is no matter of another.
func (b *Bus) Pin(ctx context.Context, log, subscriber string) (delivery.Span, error) {
	span := delivery.Span{Pin: "pin:" + subscriber + ":" + rand.Text()}
	at, err := b.do(ctx, "pin", []string{b.holders(log), b.lastID(log)}, span.Pin, pinned.Milliseconds())
	if err == nil {
		span.From, err = delivery.ParseID(at)
	}
	return span, err
}

// A pin is one of a log.
type pin struct{ log, name string }

// settlePins makes pins last until an owner holds their logs, or removes them. Call it when the settings are stored. It may be repeated.
func (b *Bus) settlePins(ctx context.Context, wanted map[pin]bool) error {
	var calls []*store.ScriptCall
	for p, is := range wanted {
		calls = append(calls, call("settle", []string{b.holders(p.log)}, p.name, is))
	}
	b.client.Run(ctx, calls...)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

// A Hold says up to where the subscribers of a delivery partition have come in a log.
type Hold struct {
	Log    string
	Epoch  int64 // of the owner
	At     delivery.ID
	None   bool     // they need nothing of it
	Pinned []string // pins that it replaces
}

// Hold has a log keep what the subscribers of delivery partition n need, and trims the log down to keep entries, as far as nobody
// needs them, if it is longer. It may be repeated.
func (b *Bus) Hold(ctx context.Context, n int, h Hold, keep int64) error {
	at := ""
	if !h.None {
		at = h.At.String()
	}
	args := []any{n, h.Epoch, at}
	for _, name := range h.Pinned {
		args = append(args, name)
	}
	text, err := b.do(ctx, "hold", []string{b.holders(h.Log), b.Key(h.Log)}, args...)
	if err != nil {
		return fmt.Errorf("hold log %s: %w", h.Log, err)
	}
	if length, _ := strconv.ParseInt(text, 10, 64); length <= keep {
		return nil
	}
	meta, _, err := b.client.LoadMeta(ctx, b.Stream(h.Log))
	if err == nil {
		_, err = b.client.Trim(ctx, []store.TrimRequest{{Log: b.Key(h.Log), Processors: meta.Processors, Size: keep, Holders: b.holders(h.Log)}})
	}
	return err
}

// Drop removes the oldest entries of a log, even if they are needed, and returns how many: so many, and as many as come meanwhile. A call of
// unknown outcome may have removed them.
func (b *Bus) Drop(ctx context.Context, log string, count int) (int64, error) {
	length, err := b.client.Retrying.XLen(ctx, b.Key(log)).Result()
	if err != nil {
		return 0, err
	}
	return b.client.Retrying.XTrimMaxLen(ctx, b.Key(log), max(length-int64(count), 0)).Result()
}
