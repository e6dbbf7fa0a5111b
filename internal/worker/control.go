package worker

import (
	"context"

	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// control reads the control streams of all processors and of the app over one connection and
// dispatches the messages. They are hints: the next heartbeat makes up for a lost message.
func (w *Worker) control(ctx context.Context) {
	if len(w.executors) == 0 {
		return
	}
	keys := make([]string, len(w.executors)+1)
	after := make([]string, len(keys))
	at := map[string]int{}
	for n, x := range w.executors {
		keys[n] = w.client.Keys().Control(x.p.Stream, x.p.Name)
		at[keys[n]] = n
	}
	app := len(w.executors)
	keys[app] = w.client.Keys().AppControl()
	at[keys[app]] = app
	r := w.client.NewTail(redisconn.TailOptions{})
	defer r.Close()

	retry := outage.New(w.log, "control stream", &w.count.Errors)
	known := false
	for ctx.Err() == nil {
		var chunks []redisconn.Chunk
		var err error
		if !known {
			// Also after an outage: a flushed stream starts again at lower IDs.
			after, err = w.client.ControlTail(ctx, keys)
			if known = err == nil; known {
				w.forwarder.all() // there may have been messages meanwhile
				w.rules.look()
			}
		}
		if err == nil {
			chunks, err = r.Read(ctx, keys, after, block)
		}
		if err != nil {
			known = false
			retry.Wait(ctx, err)
			continue
		}
		retry.Recovered()
		for _, c := range chunks {
			n := at[c.Key]
			after[n] = c.Entries[len(c.Entries)-1].ID
			if n == app {
				w.notify(c.Entries)
			} else {
				w.executors[n].notify(c.Entries)
			}
		}
	}
}

// notify handles messages to the app. Unknown kinds concern others.
func (w *Worker) notify(entries []redisconn.Entry) {
	for _, e := range entries {
		if store.ControlKind(e) == store.KindRules {
			w.rules.look()
		}
	}
}

// notify passes control messages to the member.
func (x *executor) notify(entries []redisconn.Entry) {
	i := x.member()
	if i == nil {
		return
	}
	for _, e := range entries {
		if h, ok := store.ParseHint(e); ok {
			i.hint(h)
			continue
		}
		m, err := store.ParseControl(e)
		if err != nil {
			x.log.Warn("control message ignored", "event", e.ID, "err", err)
			continue
		}
		i.coord.Notify(m)
	}
}

// hint handles a hint about one partition.
func (m *member) hint(h store.Hint) {
	switch h.Kind {
	case store.HintDue:
		m.w.forwarder.earlier(store.StreamPartition{Stream: m.p.Stream, Partition: h.Partition})
	case store.HintPoke:
		if p := m.ownerships.at(h.Partition); p != nil {
			p.source.notify()
		}
	}
}
