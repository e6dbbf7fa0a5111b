package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// An umpire hears of every request that reaches a receiver. A subscriber that was removed and made anew is another one to it; its name
// is that of the callback.
type umpire struct {
	mu   sync.Mutex
	subs map[string]*judged
	bad  []string

	requests, repeats, late int
}

// A judged is what an umpire knows of one subscriber.
type judged struct {
	most     int
	content  map[string]string         // by batch
	received map[string]map[int64]bool // by topic: numbers
	settled  map[string]map[int64]bool // of them those that were answered with success
	highest  map[string]int64          // by topic: of what came in time
	newest   int64                     // epoch
	closed   map[string]int64          // by topic that has ended: the last number when that was confirmed
	begun    *begun                    // nil: anything may come
	after    map[int64]map[string]bool // by epoch: what came after the subscriber was removed
}

// A begun is what may still come although nothing may begin.
type begun struct {
	removed bool
	upTo    map[string]int64 // by topic: what was settled or in the open batch
	attempt int              // of the open batch
	open    map[string]int64 // by topic: what came before the open batch
}

func (j *umpire) add(name string, most int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.subs == nil {
		j.subs = map[string]*judged{}
	}
	j.subs[name] = &judged{
		most: most, content: map[string]string{}, received: map[string]map[int64]bool{}, settled: map[string]map[int64]bool{},
		highest: map[string]int64{}, closed: map[string]int64{}, after: map[int64]map[string]bool{},
	}
}

// of calls fn with what is known of a subscriber.
func (j *umpire) of(name string, fn func(s *judged)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fn(j.subs[name])
}

// failf notes a violation. The caller has mu.
func (j *umpire) failf(format string, args ...any) {
	j.bad = append(j.bad, fmt.Sprintf(format, args...))
}

// verdict returns the first violations.
func (j *umpire) verdict() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bad[:min(len(j.bad), 10)]
}

// An item is an event as a receiver has it. The URL ends with its number in its topic.
type item struct {
	topic string
	n     int64
}

// itemsOf returns the events of a body.
func itemsOf(body []byte) (items []item, err error) {
	var events []struct{ Topic, URL string }
	if err = json.Unmarshal(body, &events); err != nil {
		return nil, err
	}
	for _, e := range events {
		n, err := strconv.ParseInt(e.URL[strings.LastIndexByte(e.URL, '/')+1:], 10, 64)
		if err != nil {
			return nil, err
		}
		items = append(items, item{e.Topic, n})
	}
	return items, nil
}

// receive hears of a request, and returns its events.
func (j *umpire) receive(name string, h http.Header, body []byte) []item {
	items, err := itemsOf(body)
	epoch, _ := strconv.ParseInt(h.Get("Runnel-Epoch"), 10, 64)
	attempt, _ := strconv.Atoi(h.Get("Runnel-Attempt"))
	id := h.Get("Runnel-Batch")
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.subs[name]
	switch {
	case s == nil:
		j.failf("there is no subscriber %s", name)
		return nil
	case err != nil || len(items) == 0 || len(items) > s.most || epoch == 0 || attempt == 0 || id == "":
		j.failf("%s got a request that is none: %d events of %d, %v, %v", name, len(items), s.most, err, h)
		return nil
	}
	j.requests++
	late := epoch < s.newest
	s.newest = max(s.newest, epoch)
	if was, again := s.content[id]; again && was != string(body) {
		j.failf("%s: batch %s came with other events:\n\t%s\n\t%s", name, id, was, body)
	} else if again {
		j.repeats++
	}
	s.content[id] = string(body)
	j.notBegun(name, s, items, id, attempt, epoch)
	for _, one := range items {
		j.item(name, s, one, late, h)
	}
	return items
}

// item hears of one event.
func (j *umpire) item(name string, s *judged, one item, late bool, h http.Header) {
	if last, closed := s.closed[one.topic]; closed && one.n > last {
		j.failf("%s: %s/%d was published after the topic had ended, at %d", name, one.topic, one.n, last)
	}
	if s.received[one.topic] == nil {
		s.received[one.topic], s.settled[one.topic] = map[int64]bool{}, map[int64]bool{}
	}
	switch first := !s.received[one.topic][one.n]; {
	case first && late:
		j.late++
	case first && one.n < s.highest[one.topic]:
		j.failf("%s: %s/%d came for the first time behind %d, with %v", name, one.topic, one.n, s.highest[one.topic], h)
	}
	s.received[one.topic][one.n] = true
	if !late {
		s.highest[one.topic] = max(s.highest[one.topic], one.n)
	}
}

// notBegun judges a request that comes when nothing may begin.
func (j *umpire) notBegun(name string, s *judged, items []item, id string, attempt int, epoch int64) {
	if s.begun == nil {
		return
	}
	if s.begun.removed { // what each owner had begun may come
		if s.after[epoch] == nil {
			s.after[epoch] = map[string]bool{}
		}
		if s.after[epoch][fmt.Sprint(id, attempt)] = true; len(s.after[epoch]) > 1 {
			j.failf("%s was removed, and then got %v of epoch %d", name, s.after[epoch], epoch)
		}
		return
	}
	for _, one := range items {
		switch {
		case one.n > s.begun.upTo[one.topic]:
			j.failf("%s is paused, and got %s/%d beyond %d", name, one.topic, one.n, s.begun.upTo[one.topic])
			return
		case one.n > s.begun.open[one.topic] && attempt > s.begun.attempt && epoch >= s.newest:
			j.failf("%s is paused, and got attempt %d of its batch, beyond %d", name, attempt, s.begun.attempt)
			return
		}
	}
}

// answered hears that a request is answered with success.
func (j *umpire) answered(name string, items []item) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range items {
		j.subs[name].settled[one.topic][one.n] = true
	}
}
