package webhook

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

const (
	pastRead  = 256              // entries of a read
	pastBytes = 4 << 20          // that a log has in memory
	pastKept  = 10 * time.Second // behind their last use
)

// A past is parts of a log that subscribers who are far behind have asked for. Those who are as far behind share them.
type past struct {
	parts []*part                 // in the order in which they were read
	asked map[delivery.ID][]heard // who waits for what lies behind an ID
}

// A part is what lies behind an ID.
type part struct {
	start  delivery.ID
	bytes  int
	events []delivery.Event // at least one
	used   time.Time
}

// heard is told what lies behind an ID: nothing and no error means that the log has been read and has nothing there.
type heard func(events []delivery.Event, err error)

// after returns events behind an ID that are in memory.
func (p *past) after(behind delivery.ID, most int) []delivery.Event {
	for _, one := range p.parts {
		if behind.Compare(one.start) >= 0 && behind.Compare(one.events[len(one.events)-1].ID) < 0 {
			one.used = time.Now()
			return firstBehind(one.events, behind, most)
		}
	}
	return nil
}

// add adds what was read, and forgets what nobody has used lately, or what is too much.
func (p *past) add(start delivery.ID, events []delivery.Event) {
	if len(events) > 0 {
		one := &part{start: start, events: events, used: time.Now()}
		for _, e := range events {
			one.bytes += len(e.Payload) + eventBytes
		}
		p.parts = append(p.parts, one)
	}
	kept, bytes := len(p.parts), 0
	for kept > 0 && bytes < pastBytes && time.Since(p.parts[kept-1].used) < pastKept {
		kept--
		bytes += p.parts[kept].bytes
	}
	p.parts = append([]*part(nil), p.parts[kept:]...)
}

// ask reads what lies behind an ID, in a goroutine, and tells all who have asked meanwhile.
func (f *feeds) ask(name string, behind delivery.ID, tell heard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.logs[name]
	if one == nil {
		return // the subscriber does not need it any more
	}
	if one.past.asked == nil {
		one.past.asked = map[delivery.ID][]heard{}
	}
	waiting, under := one.past.asked[behind]
	one.past.asked[behind] = append(waiting, tell)
	if under {
		return
	}
	f.b.count.Add(buses.Cold, f.b.name)
	go func() {
		f.b.reads <- struct{}{}
		f.mu.Lock()
		before := len(one.past.asked[behind])
		f.mu.Unlock()
		events, err := f.entries(one.log, behind)
		<-f.b.reads
		f.mu.Lock()
		waiting := one.past.asked[behind]
		delete(one.past.asked, behind)
		one.past.add(behind, events)
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
func (f *feeds) entries(log iwebhook.Log, behind delivery.ID) ([]delivery.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), feedWait)
	defer cancel()
	entries, err := f.b.calls.Client().Retrying.XRangeN(ctx, f.b.calls.Key(log), "("+behind.String(), "+", pastRead).Result()
	return eventsOf(log.String(), entries), err
}
