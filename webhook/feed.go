package webhook

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	feedRead   = 128             // entries of a log in one read
	pastRead   = 256             // for one that is behind
	feedWait   = 5 * time.Second // for which a read blocks
	feedBytes  = 16 << 20        // that all logs have in memory
	leastFeed  = 256 << 10       // that each log has
	partBytes  = 256 << 10       // from which on a part is complete
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

// A feed is what owners have read of a log lately: the end of it, and what subscribers asked for who are behind.
type feed struct {
	log   string
	users map[*owner]bool
	tail  *part                   // grows as the log does; nil: it is not known yet where that begins
	parts []*part                 // with the tail
	bytes int                     // of all parts
	asked map[delivery.ID][]heard // who waits for what lies behind an ID
}

// A part is what a log had behind an ID, without a gap.
type part struct {
	start, last delivery.ID
	bytes       int
	events      []delivery.Event
	used        time.Time
}

// add adds what was read. Owners may still read the events before.
func (p *part) add(events []delivery.Event) (bytes int) {
	for _, e := range events {
		bytes += len(e.Payload) + eventBytes
		p.last = e.ID
	}
	p.events, p.bytes, p.used = append(p.events, events...), p.bytes+bytes, time.Now()
	return bytes
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
	switch {
	case wanted && one == nil:
		f.logs[name] = &feed{log: name, users: map[*owner]bool{o: true}, asked: map[delivery.ID][]heard{}}
		f.tail.Wake()
	case wanted:
		one.users[o] = true
		if one.tail != nil {
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
	if one == nil || one.tail == nil || behind.Compare(one.tail.last) >= 0 {
		return nil, false // the owner is told when there is more
	}
	for _, p := range slices.Backward(one.parts) {
		if behind.Compare(p.start) >= 0 && behind.Compare(p.last) < 0 {
			p.used = time.Now()
			at := sort.Search(len(p.events), func(i int) bool { return behind.Compare(p.events[i].ID) < 0 })
			end := min(at+most, len(p.events))
			return p.events[at:end:end], false
		}
	}
	return nil, true
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
		if one.tail != nil {
			key := f.b.calls.Key(one.log)
			by[key], names, after = one, append(names, key), append(after, one.tail.last.String())
		}
	}
	f.mu.Unlock()
	chunks, err := tail.Read(ctx, names, after, feedWait)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, chunk := range chunks {
		one := by[chunk.Key]
		if last := one.tail.last; one.tail.bytes >= partBytes {
			one.tail = &part{start: last, last: last}
			one.parts = append(one.parts, one.tail)
		}
		one.bytes += one.tail.add(eventsOf(one.log, chunk.Entries))
		f.forget(one)
		one.tell()
	}
	return err
}

// tell tells all owners that the log may have more.
func (one *feed) tell() {
	for o := range one.users {
		o.news(one.log)
	}
}

// forget forgets the parts that were not used for longest, while there are too many.
func (f *feeds) forget(one *feed) {
	for one.bytes > max(feedBytes/max(len(f.logs), 1), leastFeed) && len(one.parts) > 1 {
		i := 0
		for j, p := range one.parts {
			if p != one.tail && (one.parts[i] == one.tail || p.used.Before(one.parts[i].used)) {
				i = j
			}
		}
		one.bytes -= one.parts[i].bytes
		one.parts = slices.Delete(one.parts, i, i+1)
	}
}

// begin finds out where new feeds begin.
func (f *feeds) begin(ctx context.Context) error {
	var fresh []string
	f.mu.Lock()
	for _, one := range f.logs {
		if one.tail == nil {
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
		if one := f.logs[log]; one != nil && one.tail == nil {
			one.tail = &part{start: e.Last, last: e.Last}
			one.parts = append(one.parts, one.tail)
			one.tell()
		}
	}
	return err
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

// heard is told what lies behind an ID: nothing and no error means that the log has been read and has nothing there.
type heard func(events []delivery.Event, err error)

// ask reads what lies behind an ID, in a goroutine, and tells all who have asked meanwhile.
func (f *feeds) ask(name string, behind delivery.ID, tell heard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.logs[name]
	if one == nil {
		return // the subscriber does not need it any more
	}
	waiting, under := one.asked[behind]
	one.asked[behind] = append(waiting, tell)
	if under {
		return
	}
	f.b.count.Add(buses.Cold, f.b.name)
	go func() {
		f.b.reads <- struct{}{}
		f.mu.Lock()
		before := len(one.asked[behind])
		f.mu.Unlock()
		events, err := f.entries(one.log, behind)
		<-f.b.reads
		f.mu.Lock()
		waiting := one.asked[behind]
		delete(one.asked, behind)
		if len(events) > 0 {
			p := &part{start: behind}
			one.bytes += p.add(events)
			one.parts = append(one.parts, p)
			f.forget(one)
		}
		f.mu.Unlock()
		for i, tell := range waiting {
			if i >= before && len(events) == 0 && err == nil {
				f.ask(name, behind, tell) // there may be something by now
			} else {
				tell(events, err)
			}
		}
	}()
}

// entries reads from Redis.
func (f *feeds) entries(log string, behind delivery.ID) ([]delivery.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), feedWait)
	defer cancel()
	entries, err := f.b.calls.Client().Retrying.XRangeN(ctx, f.b.calls.Key(log), "("+behind.String(), "+", pastRead).Result()
	return eventsOf(log, entries), err
}
