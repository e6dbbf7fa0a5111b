package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// random is a correct history with the places that mutants need.
type random struct {
	rng     *rand.Rand
	records []Record
	runs    []ran
	now     int64
	epoch   int64
}

// ran is a completed iteration of a random history: the indices of its records.
type ran struct {
	begin, end int
	place      string
	clean      bool // the first one after a clean handover
	excuse     int  // the index of the fault that excuses its repeats, or -1
}

func (h *random) add(r Record) int {
	h.now += 1 + h.rng.Int64N(int64(10*time.Millisecond))
	r.At = h.now
	h.records = append(h.records, r)
	return len(h.records) - 1
}

// newRandom makes a history of two processors over three partitions with random batches, handovers, crashes that
// repeat events, and events that were sent again.
func newRandom(seed uint64) *random {
	h := &random{rng: rand.New(rand.NewPCG(seed, 1))}
	seq := map[string]int64{}
	for partition := range 3 {
		var events []Record
		for n := range 12 + h.rng.IntN(20) {
			k := fmt.Sprintf("p%d-%d", partition, h.rng.IntN(4))
			again := n > 0 && h.rng.IntN(10) == 0 && h.outcomeUnknown(events[n-1])
			if again {
				k = events[n-1].Keys[0]
			} else {
				seq[k]++
			}
			e := Record{
				Kind: Sent, Partition: partition, IDs: []string{fmt.Sprintf("%d-%d", n/3+8, n%3)},
				Keys: []string{k}, Seqs: []int64{seq[k]},
			}
			h.add(e)
			events = append(events, e)
		}
		for _, processor := range []string{"printer", "mailer"} {
			h.process(processor, events)
		}
	}
	// One place after the other is as good as interleaved: Check follows each by itself.
	return h
}

func (h *random) outcomeUnknown(e Record) bool {
	h.add(Record{Kind: Unknown, Keys: e.Keys, Seqs: e.Seqs})
	return true
}

func (h *random) process(processor string, events []Record) {
	term, clean, excuse := h.take(processor, events[0].Partition), false, -1
	acked, at := 0, 0
	for acked < len(events) {
		batch := events[at:min(at+1+h.rng.IntN(3), len(events))]
		b := h.add(iterationOf(term, Begin, batch))
		if h.rng.IntN(8) == 0 { // killed in the iteration, and before the acks since acked
			excuse = h.add(fault(term.Worker, []string{Kill, Stop, Cut, Lost}[h.rng.IntN(4)]))
			term, clean, at = h.take(processor, term.Partition), false, acked
			continue
		}
		e := h.add(iterationOf(term, End, batch))
		h.runs = append(h.runs, ran{b, e, fmt.Sprint(processor, term.Partition), clean, excuse})
		clean = false
		at += len(batch)
		if h.rng.IntN(3) == 0 || at == len(events) {
			acked = at
		}
		if acked == at && h.rng.IntN(4) == 0 {
			h.add(fault(term.Worker, Term))
			term, clean, excuse = h.take(processor, term.Partition), true, -1
		}
	}
}

// take gives a place to an unknown worker.
func (h *random) take(processor string, partition int) Record {
	h.epoch += 1 + h.rng.Int64N(5)
	worker := fmt.Sprint("w", h.epoch)
	return Record{Worker: worker, Executor: "x" + worker, Processor: processor, Partition: partition, Epoch: h.epoch}
}

func iterationOf(r Record, kind Kind, events []Record) Record {
	r.Kind = kind
	for _, e := range events {
		r.IDs, r.Keys, r.Seqs = append(r.IDs, e.IDs...), append(r.Keys, e.Keys...), append(r.Seqs, e.Seqs...)
	}
	return r
}

// times counts how often the first event of an iteration is completed at its place.
func (h *random) times(x ran) int {
	n := 0
	for _, y := range h.runs {
		if y.place == x.place && slices.Contains(h.records[y.end].IDs, h.records[x.begin].IDs[0]) {
			n++
		}
	}
	return n
}

// pick returns a random run that fits, with the one before it at its place.
func (h *random) pick(fits func(before, x ran) bool) (before, x ran, found bool) {
	for _, i := range h.rng.Perm(len(h.runs)) {
		if i > 0 && h.runs[i-1].place == h.runs[i].place && fits(h.runs[i-1], h.runs[i]) {
			return h.runs[i-1], h.runs[i], true
		}
	}
	return ran{}, ran{}, false
}

func (h *random) sameTerm(a, b ran) bool { return h.records[a.begin].Epoch == h.records[b.begin].Epoch }

func (h *random) once(_, x ran) bool { return h.times(x) == 1 }

func (h *random) remove(indices ...int) {
	for _, i := range indices {
		h.records[i] = Record{Kind: Note, At: h.records[i].At}
	}
}

// repeatRun inserts a copy of the run x under the term of the run y.
func (h *random) repeatRun(x, y ran, at int64) {
	for _, i := range []int{x.begin, x.end} {
		r, term := h.records[i], h.records[y.begin]
		r.Worker, r.Executor, r.Epoch, r.At = term.Worker, term.Executor, term.Epoch, at
		h.records = append(h.records, r)
	}
}

// mutants break a correct history so that at least this class of violation is found; apply reports
// whether it found a place to do so.
var mutants = []struct {
	name  string
	class Class
	apply func(*random) bool
}{
	{"drop an end", ClassLoss, func(h *random) bool {
		_, x, ok := h.pick(h.once)
		if ok {
			h.remove(x.end)
		}
		return ok
	}},
	{"drop an iteration", ClassLoss, func(h *random) bool {
		_, x, ok := h.pick(h.once)
		if ok {
			h.remove(x.begin, x.end)
		}
		return ok
	}},
	{"complete in another partition", ClassLoss, func(h *random) bool {
		_, x, ok := h.pick(h.once)
		if ok {
			h.records[x.begin].Partition, h.records[x.end].Partition = 7, 7
		}
		return ok
	}},
	{"swap two iterations", ClassOrder, func(h *random) bool {
		a, b, ok := h.pick(func(a, b ran) bool { return h.times(a) == 1 && h.times(b) == 1 })
		if ok {
			for _, pair := range [][2]int{{a.begin, b.begin}, {a.end, b.end}} {
				x, y := &h.records[pair[0]], &h.records[pair[1]]
				x.IDs, x.Keys, x.Seqs, y.IDs, y.Keys, y.Seqs = y.IDs, y.Keys, y.Seqs, x.IDs, x.Keys, x.Seqs
			}
		}
		return ok
	}},
	{"repeat within a term", ClassRepeat, func(h *random) bool {
		_, x, ok := h.pick(h.once)
		if ok {
			h.repeatRun(x, x, h.records[x.end].At)
		}
		return ok
	}},
	{"repeat after a clean handover", ClassRepeat, func(h *random) bool {
		a, b, ok := h.pick(func(_, b ran) bool { return b.clean })
		if ok {
			h.repeatRun(a, b, h.records[b.begin].At-1)
		}
		return ok
	}},
	{"drop the fault before a repeat", ClassRepeat, func(h *random) bool {
		_, b, ok := h.pick(func(a, b ran) bool {
			return b.excuse >= 0 && h.records[b.excuse].Worker == h.records[a.begin].Worker &&
				slices.Contains(h.records[a.end].IDs, h.records[b.end].IDs[0])
		})
		if ok {
			h.remove(b.excuse)
		}
		return ok
	}},
	{"old owner goes on", ClassOwner, func(h *random) bool {
		a, b, ok := h.pick(func(a, b ran) bool { return !h.sameTerm(a, b) })
		if ok {
			h.records[a.begin].At = h.records[b.begin].At
			h.records[a.end].At = h.records[b.end].At
			// Ties keep their order in the log, so the old owner's begin must stand behind.
			h.records[a.begin].At++
			h.records[a.end].At++
		}
		return ok
	}},
	{"epoch goes back", ClassOwner, func(h *random) bool {
		_, x, ok := h.pick(func(a, b ran) bool { return true })
		if ok {
			h.records[x.begin].Epoch, h.records[x.end].Epoch = 0, 0
		}
		return ok
	}},
	{"two owners of one epoch", ClassOwner, func(h *random) bool {
		_, x, ok := h.pick(h.sameTerm)
		if ok {
			h.records[x.begin].Executor, h.records[x.end].Executor = "other", "other"
		}
		return ok
	}},
	{"overlap within a term", ClassOwner, func(h *random) bool {
		a, b, ok := h.pick(h.sameTerm)
		if ok {
			h.records[a.end].At = h.records[b.begin].At + 1
		}
		return ok
	}},
	{"sent again without unknown", ClassResend, func(h *random) bool {
		resent := map[string]int{}
		for _, r := range h.records {
			if r.Kind == Sent {
				resent[fmt.Sprint(r.Keys, r.Seqs)]++
			}
		}
		found := false
		for i, r := range h.records {
			if r.Kind == Unknown && resent[fmt.Sprint(r.Keys, r.Seqs)] > 1 {
				h.remove(i)
				found = true
			}
		}
		return found
	}},
}

func TestRandomHistoriesAreCorrect(t *testing.T) {
	var repeats, resends, clean, unclean int
	for seed := range uint64(200) {
		report := Check(newRandom(seed).records, Options{})
		if !report.OK {
			t.Fatalf("seed %d: %s", seed, report)
		}
		repeats, resends = repeats+report.Repeats, resends+report.Resends
		clean, unclean = clean+report.Clean, unclean+report.Unclean
	}
	if repeats == 0 || resends == 0 || clean == 0 || unclean == 0 {
		t.Errorf("too tame: %d repeats, %d resends, %d clean and %d unclean handovers", repeats, resends, clean, unclean)
	}
}

func TestMutantsAreCaught(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			applied := 0
			for seed := range uint64(40) {
				h := newRandom(seed)
				if !m.apply(h) {
					continue
				}
				applied++
				report := Check(h.records, Options{})
				if !slices.ContainsFunc(report.Violations, func(v Violation) bool { return v.Class == m.class }) {
					t.Fatalf("seed %d: no violation of %s: %s", seed, m.class, report)
				}
			}
			if applied < 10 {
				t.Errorf("applied to %d of 40 histories only", applied)
			}
		})
	}
}
