package webhook

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/store"
)

// pinned is for how long a pin counts whose subscription is not stored yet.
const pinned = time.Minute

func pinOf(subscriber string) string { return "pin:" + subscriber }

// Pin returns the end of a log, and has the log keep what comes behind it for a subscriber: for a minute, or longer if Change stores
// settings that name the log.
func (b *Bus) Pin(ctx context.Context, l Log, subscriber string) (delivery.ID, error) {
	at, err := b.do(ctx, "pin", []string{l.holders(b), l.lastID(b)}, pinOf(subscriber), pinned.Milliseconds())
	if err != nil {
		return delivery.ID{}, err
	}
	return delivery.ParseID(at)
}

// settlePins makes the pins of a subscriber last until its owner holds the logs, as far as it wants these, and removes the others. Call it
// when the settings are stored. It may be repeated.
func (b *Bus) settlePins(ctx context.Context, subscriber string, wanted map[string]bool) error {
	var calls []*store.ScriptCall
	for name, is := range wanted {
		log, err := ParseLog(name)
		if err != nil {
			return err
		}
		calls = append(calls, call("settle", []string{log.holders(b)}, pinOf(subscriber), is))
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
	Log    Log
	Epoch  int64 // of the owner
	At     delivery.ID
	None   bool     // they need nothing of it
	Pinned []string // subscribers whose pins it replaces
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
		args = append(args, pinOf(name))
	}
	text, err := b.do(ctx, "hold", []string{h.Log.holders(b), b.Key(h.Log)}, args...)
	if err != nil {
		return fmt.Errorf("hold log %s: %w", h.Log, err)
	}
	if length, _ := strconv.ParseInt(text, 10, 64); length <= keep {
		return nil
	}
	meta, _, err := b.client.LoadMeta(ctx, b.Stream(h.Log.Topic))
	if err == nil {
		_, err = b.client.Trim(ctx, []store.TrimRequest{{Log: b.Key(h.Log), Processors: meta.Processors, Size: keep, Holders: h.Log.holders(b)}})
	}
	return err
}

// Drop removes the oldest entries of a log, at most count, whoever needs them, and returns how many. A call of unknown outcome may
// have removed them.
func (b *Bus) Drop(ctx context.Context, l Log, count int) (int64, error) {
	text, err := b.do(ctx, "drop", []string{b.Key(l)}, count)
	if err != nil {
		return 0, fmt.Errorf("drop entries of log %s: %w", l, err)
	}
	return strconv.ParseInt(text, 10, 64)
}
