package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/runnel-go/runnel/internal/test/exact"
)

// Options are the parts of the rules that differ between tests.
type Options struct {
	// Processors that must complete every event; nil means those of its stream that appear in the history.
	Processors []string
	// Retries allows an event to be begun again under the same epoch while it is not completed.
	Retries bool
	// Lanes is what waits for a failed event until it is completed or a dead letter. It implies
	// Retries. Without it there are no lanes.
	Lanes Lanes
	// Attempts is the largest allowed number of attempts before a begin, 0 for any.
	Attempts int
	// Some is set if not all replicas must confirm sends: beside a new master, an old one may still
	// accept events that are then lost, and counted.
	Some bool
	// Rest is what Atomic processors have left.
	Rest []exact.Stage
}

// Lanes are the scope of events that wait for a failed one.
type Lanes string

const (
	LanePartition Lanes = "partition" // everything behind it at the place
	LaneKey       Lanes = "key"       // what is behind it of its key
	LaneEvent     Lanes = "event"     // nothing
)

// place is where order is promised.
type place struct {
	stream, processor string
	partition         int
}

func (p place) String() string {
	return fmt.Sprintf("stream %q processor %q partition %d", p.stream, p.processor, p.partition)
}

type entry struct {
	stream    string
	partition int
	id        entryID
}

// message is an event as its producer identifies it, whatever its entries.
type message struct {
	stream, key string
	seq         int64
}

// checker holds the state of the whole history.
type checker struct {
	opts   Options
	report *Report

	faults     faults
	sent       map[entry]*Record    // sent or appended
	told       map[entry]bool       // its sender was told that it is in
	messages   map[entry]message    // what an entry carries, by the first record of it
	heard      map[entry]int64      // when that was
	lastHeard  map[entry]int64      // when it was begun, or ended, or a dead letter, for the last time
	lastSeen   map[entry]int64      // when it was found in its partition for the last time
	entries    map[message][]entry  // the entries of a message
	outcome    map[message]Kind     // unknown, or else sent, or else refused
	refusals   map[message]*Record  // to explain
	processors map[string][]string  // of a stream
	places     map[place]*ownership // in the state after the records so far
	dead       map[place]map[entryID]*Record
	dropped    map[place]int // how many
	holds      []*hold
	wipes      map[place][]*wipe // of a partition
	accepted   map[place]*accepted
	late       map[message]*late
}

// Check judges a history. The records may come in any order; those of one process with equal times stay in theirs.
func Check(records []Record, opts Options) *Report {
	opts.Retries = opts.Retries || opts.Lanes != ""
	c := &checker{
		opts: opts, report: &Report{},
		sent: map[entry]*Record{}, told: map[entry]bool{}, messages: map[entry]message{}, heard: map[entry]int64{}, lastHeard: map[entry]int64{}, lastSeen: map[entry]int64{}, entries: map[message][]entry{},
		outcome: map[message]Kind{}, refusals: map[message]*Record{},
		processors: map[string][]string{}, places: map[place]*ownership{}, dead: map[place]map[entryID]*Record{},
		dropped: map[place]int{}, wipes: map[place][]*wipe{}, accepted: map[place]*accepted{}, late: map[message]*late{},
	}
	ordered := slices.Clone(records)
	slices.SortStableFunc(ordered, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	for i := range ordered {
		if ordered[i].Kind == Fault {
			c.report.Faults++
			c.faults.learn(&ordered[i])
		}
	}
	for i := range ordered {
		c.learn(&ordered[i])
	}
	for i := range ordered {
		c.follow(&ordered[i])
	}
	c.losses()
	c.delays()
	c.burials()
	c.resends()
	for _, stage := range opts.Rest {
		c.report.once(stage)
	}
	c.conclude()
	return c.report
}

func (c *checker) conclude() {
	for _, o := range c.places {
		for _, t := range o.terms {
			c.report.Epochs++
			c.report.Unfinished += t.unfinished
			if t.open != nil {
				c.report.Unfinished++
			}
		}
	}
	slices.SortStableFunc(c.report.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.at(), b.at()), cmp.Compare(a.What, b.What))
	})
	c.report.OK = len(c.report.Violations) == 0
}

// learn records what does not depend on the order of iterations.
func (c *checker) learn(r *Record) {
	if err := r.check(); err != nil {
		c.violate(ClassRecord, "record", err.Error(), *r)
		return
	}
	switch r.Kind {
	case Begin:
		if !slices.Contains(c.processors[r.Stream], r.Processor) {
			c.processors[r.Stream] = append(c.processors[r.Stream], r.Processor)
		}
		c.learnEntries(r)
	case Sent, Appended:
		c.learnEntries(r)
	case Dead:
		c.learnEntries(r)
		c.learnDead(r)
	case Dropped:
		c.dropped[r.scope()] += r.Count
	case Held, Freed:
		c.learnHold(r)
	case Wiped:
		c.learnWiped(r)
	case Rest:
		c.learnRest(r)
	case Owned:
		c.own(r)
	case Delayed, Recalled:
		c.learnLate(r)
	case Unknown, Refused:
		for i, key := range r.Keys {
			c.learnOutcome(message{r.Stream, key, r.Seqs[i]}, r)
		}
	}
}

func (c *checker) learnEntries(r *Record) {
	for i := range r.IDs {
		id, _ := parseID(r.IDs[i])
		e, m := entry{r.Stream, r.Partition, id}, message{r.Stream, r.Keys[i], r.Seqs[i]}
		if r.Kind != Begin && r.Kind != Dead {
			c.learnOutcome(m, r)
			c.early(r, id)
			if c.sent[e] == nil {
				c.sent[e] = r
				c.report.Events++
			}
			c.told[e] = c.told[e] || r.Kind == Sent
		}
		if r.Kind == Appended {
			c.lastSeen[e] = max(c.lastSeen[e], r.At)
		} else if r.Kind != Sent {
			c.lastHeard[e] = max(c.lastHeard[e], r.At)
		}
		known, seen := c.messages[e]
		if !seen {
			c.messages[e], c.heard[e] = m, r.At
			c.entries[m] = append(c.entries[m], e)
		} else if known != m && !c.faults.split(r.At) && !c.faults.split(c.heard[e]) { // two masters may give the same ID
			c.violate(ClassRecord, fmt.Sprintf("stream %q partition %d", r.Stream, r.Partition),
				fmt.Sprintf("entry %s carries key %q seq %d here and key %q seq %d elsewhere",
					id, m.key, m.seq, known.key, known.seq), *r)
		}
	}
}

func (c *checker) learnOutcome(m message, r *Record) {
	switch r.Kind {
	case Unknown:
		c.outcome[m] = Unknown
	case Refused:
		c.refusals[m] = r
		c.outcome[m] = cmp.Or(c.outcome[m], Refused)
	default:
		if c.outcome[m] != Unknown {
			c.outcome[m] = Sent
		}
	}
}

func (c *checker) violate(class Class, where, what string, records ...Record) {
	c.report.Violations = append(c.report.Violations, Violation{class, where, what, records})
}

// losses looks for events that a processor never completed.
func (c *checker) losses() {
	missing := map[place][]entryID{}
	for e, r := range c.sent {
		processors := c.opts.Processors
		if processors == nil {
			processors = c.processors[e.stream]
		}
		if len(processors) == 0 {
			c.violate(ClassLoss, fmt.Sprintf("stream %q", e.stream), fmt.Sprintf("no processor has begun anything, and %s was sent", e.id), *r)
		}
		for _, name := range processors {
			p := place{e.stream, name, e.partition}
			if o := c.places[p]; o != nil && o.completed[e.id] != nil || c.dead[p][e.id] != nil {
				continue
			}
			if c.faults.flushed(r.At, math.MaxInt64) || c.wiped(e.log(), e.id, math.MaxInt64) != nil {
				c.report.Excused++
				continue
			}
			if c.vanished(e) {
				c.report.Vanished++
				if c.told[e] {
					c.report.Lost++
				}
				continue
			}
			missing[p] = append(missing[p], e.id)
		}
	}
	for p, ids := range missing {
		c.miss(p, ids)
	}
}

// miss judges events that were never completed: as many as were dropped, the oldest ones, are not lost.
func (c *checker) miss(p place, ids []entryID) {
	slices.SortFunc(ids, entryID.compare)
	dropped := min(c.dropped[p], len(ids))
	c.report.Dropped += dropped
	for _, id := range ids[dropped:] {
		e := entry{p.stream, p.partition, id}
		m := c.messages[e]
		c.violate(ClassLoss, p.String(), fmt.Sprintf("entry %s key %q seq %d was never completed", id, m.key, m.seq), *c.sent[e])
	}
}

// resends looks for messages that became more than one entry without a reason.
func (c *checker) resends() {
	for m, entries := range c.entries {
		if len(entries) < 2 {
			continue
		}
		lives, vanished := map[int]bool{}, 0
		for _, e := range entries {
			if c.vanished(e) {
				vanished++
			} else {
				lives[c.life(e)] = true
			}
		}
		if c.outcome[m] == Unknown || len(lives)+vanished == len(entries) {
			c.report.Resends += len(entries) - 1
			continue
		}
		c.violate(ClassResend, fmt.Sprintf("stream %q", m.stream),
			fmt.Sprintf("key %q seq %d is in %d entries, %s and %s among them, and was never of unknown outcome",
				m.key, m.seq, len(entries), entries[0].id, entries[1].id))
	}
}
