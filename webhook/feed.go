package webhook

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

const (
	feedRead   = 128             // entries of a log in one read
	feedWait   = 5 * time.Second // for which a read blocks
	feedBytes  = 64 << 20        // that all logs have in memory
	leastFeed  = 256 << 10       // that each log has
	eventBytes = 64              // of an event beside its payload
)

// feeds read each log that subscribers of this worker need, once, and keep what came last in memory.
type feeds struct {
	b *Bus

	mu    sync.Mutex
	logs  map[string]*feed
	users map[*owner]bool
	tail  *redisconn.Tail // while there are users
	stop  func()
}

// A feed is what came last in a log.
type feed struct {
	log   iwebhook.Log
	users map[*owner]bool
	known bool             // where it begins
	start delivery.ID      // behind which ring has all that the log had
	last  delivery.ID      // that was read
	ring  []delivery.Event // by ID
	bytes int
	past  past // what lies before start, as far as subscribers have asked for it lately
}

func newFeeds(b *Bus) *feeds {
	return &feeds{b: b, logs: map[string]*feed{}, users: map[*owner]bool{}}
}

// join begins the feeds for an owner.
func (f *feeds) join(o *owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users[o] = true; len(f.users) > 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(o.ctx))
	tail, done := f.b.calls.Client().NewTail(redisconn.TailOptions{Entries: feedRead}), make(chan struct{})
	f.tail, f.stop = tail, func() { cancel(); tail.Wake(); <-done }
	go func() {
		defer close(done)
		defer tail.Close()
		f.run(ctx, tail)
	}()
}

// leave ends what an owner has wanted, and with the last one the feeds.
func (f *feeds) leave(o *owner) {
	f.mu.Lock()
	for name, feed := range f.logs {
		if delete(feed.users, o); len(feed.users) == 0 {
			delete(f.logs, name)
		}
	}
	stop := func() {}
	if delete(f.users, o); len(f.users) == 0 {
		stop = f.stop
	} else {
		f.tail.Wake()
	}
	f.mu.Unlock()
	stop()
}

// want says whether an owner needs a log.
func (f *feeds) want(o *owner, name string, wanted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.logs[name]
	switch log, err := iwebhook.ParseLog(name); {
	case err != nil:
	case wanted && one == nil:
		f.logs[name] = &feed{log: log, users: map[*owner]bool{o: true}}
		f.tail.Wake()
	case wanted:
		one.users[o] = true
		if one.known {
			o.news(name)
		}
	case one != nil:
		if delete(one.users, o); len(one.users) == 0 {
			delete(f.logs, name)
			f.tail.Wake()
		}
	}
}

// after returns events of a log behind an ID, at most so many. cold is true if they are not in memory.
func (f *feeds) after(name string, behind delivery.ID, most int) (events []delivery.Event, cold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.logs[name]
	switch {
	case one == nil || !one.known || behind.Compare(one.last) >= 0:
		return nil, false // the owner is told when there is more
	case behind.Compare(one.start) < 0:
		events = one.past.after(behind, most)
		return events, len(events) == 0
	}
	return firstBehind(one.ring, behind, most), false
}

// firstBehind returns the first events behind an ID.
func firstBehind(events []delivery.Event, behind delivery.ID, most int) []delivery.Event {
	at := sort.Search(len(events), func(i int) bool { return behind.Compare(events[i].ID) < 0 })
	end := min(at+most, len(events))
	return events[at:end:end]
}

// run reads until ctx ends.
func (f *feeds) run(ctx context.Context, tail *redisconn.Tail) {
	trouble := outage.New(f.b.log, "feeds", nil)
	for ctx.Err() == nil {
		if err := f.read(ctx, tail); err != nil {
			trouble.Wait(ctx, err)
		} else {
			trouble.Recovered()
		}
	}
}

func (f *feeds) read(ctx context.Context, tail *redisconn.Tail) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	by, names, after := map[string]*feed{}, []string(nil), []string(nil)
	f.mu.Lock()
	for _, one := range f.logs {
		if one.known {
			key := f.b.calls.Key(one.log)
			by[key], names, after = one, append(names, key), append(after, one.last.String())
		}
	}
	f.mu.Unlock()
	chunks, err := tail.Read(ctx, names, after, feedWait)
	f.mu.Lock()
	defer f.mu.Unlock()
	most := max(feedBytes/max(len(names), 1), leastFeed)
	for _, chunk := range chunks {
		one := by[chunk.Key]
		one.add(eventsOf(one.log.String(), chunk.Entries), most)
		for o := range one.users {
			o.news(one.log.String())
		}
	}
	return err
}

// begin finds out where new feeds begin.
func (f *feeds) begin(ctx context.Context) error {
	var fresh []iwebhook.Log
	f.mu.Lock()
	for _, one := range f.logs {
		if !one.known {
			fresh = append(fresh, one.log)
		}
	}
	f.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	extents, err := f.b.calls.Extents(ctx, fresh)
	f.mu.Lock()
	defer f.mu.Unlock()
	for log, e := range extents {
		if one := f.logs[log.String()]; one != nil && !one.known {
			one.known, one.start, one.last = true, e.Last, e.Last
			for o := range one.users {
				o.news(log.String())
			}
		}
	}
	return err
}

// add adds what was read. The oldest give way beyond most bytes.
func (one *feed) add(events []delivery.Event, most int) {
	for _, e := range events {
		one.ring, one.last = append(one.ring, e), e.ID
		one.bytes += len(e.Payload) + eventBytes
	}
	for one.bytes > most && len(one.ring) > 0 {
		one.bytes -= len(one.ring[0].Payload) + eventBytes
		one.start, one.ring = one.ring[0].ID, one.ring[1:] // owners may still read the array
	}
}

// eventsOf returns entries of a log as events.
func eventsOf(log string, entries []redisconn.Entry) []delivery.Event {
	events := make([]delivery.Event, 0, len(entries))
	for _, entry := range entries {
		payload, ok := entry.Values[payloadField].(string)
		if !ok {
			payload = "null" // somebody else has added it
		}
		if id, err := delivery.ParseID(entry.ID); err == nil {
			events = append(events, delivery.Event{Log: log, ID: id, Payload: payload})
		}
	}
	return events
}
