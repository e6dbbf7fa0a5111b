//go:build unix

package chaos

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/test/history"
)

// watch reads the server's state during a round: every entry before it is trimmed, whatever
// happened to its sender, and the owners that the server accepts.
type watch struct {
	s    *scene
	log  *history.Log
	stop func()

	mu      sync.Mutex
	last    [partitions]string // the last entry that was read
	letters [partitions]string // and the last dead letter
	own     [partitions]history.Record
	buried  map[string]bool // dead letters that were judged, by place and ID
}

func (s *scene) observe() *watch {
	w := &watch{s: s, log: s.open("server"), letters: s.plan.letters, buried: map[string]bool{}}
	for _, r := range s.plan.rests {
		w.last[r.Partition] = r.IDs[0]
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	for _, look := range []struct {
		every time.Duration
		at    func(context.Context)
	}{{200 * time.Millisecond, w.entries}, {100 * time.Millisecond, w.owners}} {
		wg.Go(func() {
			for ctx.Err() == nil {
				look.at(ctx)
				select {
				case <-time.After(look.every):
				case <-ctx.Done():
				}
			}
		})
	}
	w.stop = func() {
		cancel()
		wg.Wait()
	}
	return w
}

func (w *watch) end() {
	w.stop()
	w.owners(w.s.t.Context())
	awaitNil(w.s.t, "last look", func(ctx context.Context) error { return w.try(ctx) })
	w.log.Close()
}

// entries reads once. A server that does not answer is read later.
func (w *watch) entries(ctx context.Context) { _ = w.try(ctx) }

func (w *watch) try(ctx context.Context) error {
	return w.collect(everywhere, func(logs []tail) (found [][]redis.XMessage, err error) {
		var asked []*redis.XMessageSliceCmd
		_, err = w.s.topo.client().Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, l := range logs {
				asked = append(asked, p.XRange(ctx, l.key, l.from, "+"))
			}
			return nil
		})
		for _, cmd := range asked {
			found = append(found, cmd.Val()) // none, if this one was not carried out
		}
		return found, err
	})
}

// A mark is how far a watch has read.
type mark struct{ last, letters [partitions]string }

func (w *watch) mark() mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	return mark{w.last, w.letters}
}

// rewind reads again after a mark: after a failover entries may be gone, and others may be before
// those already read.
func (w *watch) rewind(m mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.letters = m.last, m.letters
}

// everywhere lists all partitions.
var everywhere = func() (list []int) {
	for n := range partitions {
		list = append(list, n)
	}
	return list
}()

// A tail is the end of a log, from an ID in the form of XRANGE.
type tail struct{ key, from string }

// collect records the new entries and dead letters of some partitions. read reads the ends of these
// logs, or some of them.
func (w *watch) collect(where []int, read func([]tail) ([][]redis.XMessage, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind := func(id string) string {
		if id == "" {
			return "-"
		}
		return "(" + id
	}
	var logs []tail
	for _, n := range where {
		logs = append(logs, tail{w.s.keys.Partition("jobs", n), behind(w.last[n])}, tail{w.s.keys.Dead("jobs", "check", n), behind(w.letters[n])})
	}
	found, err := read(logs)
	for i, list := range found {
		n := where[i/2]
		for _, e := range list {
			if i%2 == 0 {
				w.entry(n, e)
				w.last[n] = e.ID
			} else {
				w.letter(n, e)
				w.letters[n] = e.ID
			}
		}
	}
	if err != nil && w.s.t.Context().Err() == nil {
		w.s.faults.Note("look: " + err.Error())
	}
	return err
}

func (w *watch) entry(partition int, e redis.XMessage) {
	due, _ := strconv.ParseInt(text(e, "__at"), 10, 64) // 0 for none
	j := w.decode(e)
	w.s.write(w.log, history.Record{
		Kind: history.Appended, Stream: "jobs", Partition: partition, IDs: []string{e.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq}, Due: due,
	})
}

// letter records and checks a dead letter. A repeated read is no second dead letter.
func (w *watch) letter(partition int, e redis.XMessage) {
	place := fmt.Sprint(partition, "/", e.ID, "/", text(e, "__dead.id"))
	if w.buried[place] {
		return
	}
	w.buried[place] = true
	j, id, reason := w.decode(e), text(e, "__dead.id"), text(e, "__dead.reason")
	made, _ := strconv.Atoi(text(e, "__dead.attempts"))
	// Any event may also use up its attempts because its workers died, or lost the partition, which needs no fault on a
	// busy machine.
	fortune := fortuneOf(j)
	unlucky := reason == retryqueue.ReasonCrash
	if fortune < bad && !unlucky || made < attempts || made > attempts+1 {
		w.s.t.Errorf("%s of partition %d (fortune %d) is a dead letter after %d attempts: %s", id, partition, fortune, made, reason)
	}
	w.s.write(w.log, history.Record{Kind: history.Dead, Stream: "jobs", Processor: "check", Partition: partition, IDs: []string{id}, Keys: []string{j.Key}, Seqs: []int64{j.Seq}})
}

func (w *watch) decode(e redis.XMessage) (j job) {
	if err := codec.MsgPack.Decode([]byte(text(e, "data")), &j); err != nil {
		w.s.t.Errorf("entry %s: %v", e.ID, err)
	}
	return j
}

func text(e redis.XMessage, field string) string {
	s, _ := e.Values[field].(string)
	return s
}

// wiped records that everything read so far is gone.
func (w *watch) wiped(where []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range where {
		if last := w.last[n]; last != "" {
			w.s.write(w.log, history.Record{Kind: history.Wiped, Stream: "jobs", Partition: n, IDs: []string{last}})
		}
	}
}

// owners records the accepted owners that have changed. Each partition is read in one transaction:
// the epoch and the groups belong together.
func (w *watch) owners(ctx context.Context) {
	for n := range partitions {
		var epoch *redis.SliceCmd
		var groups *redis.XInfoGroupsCmd
		// Each command has its own error: a partition may not exist yet.
		_, _ = w.s.topo.client().TxPipelined(ctx, func(tx redis.Pipeliner) error {
			epoch = tx.HMGet(ctx, w.s.keys.Ownership("jobs", "check", n), "epoch", "tenure")
			groups = tx.XInfoGroups(ctx, w.s.keys.Partition("jobs", n))
			return nil
		})
		if r, ok := ownedBy(n, epoch, groups); ok && fmt.Sprint(r) != fmt.Sprint(w.own[n]) {
			w.own[n] = r
			w.s.write(w.log, r)
		}
	}
}

func ownedBy(n int, own *redis.SliceCmd, groups *redis.XInfoGroupsCmd) (history.Record, bool) {
	if own == nil || groups == nil || own.Err() != nil || groups.Err() != nil {
		return history.Record{}, false
	}
	r := history.Record{Kind: history.Owned, Stream: "jobs", Processor: "check", Partition: n}
	if epoch, _ := own.Val()[0].(string); epoch != "" {
		r.Epoch, _ = strconv.ParseInt(epoch, 10, 64)
		tenure, _ := own.Val()[1].(string)
		r.Executor, _, _ = strings.Cut(tenure, ":")
	}
	for _, g := range groups.Val() {
		if strings.HasPrefix(g.Name, "check@") {
			r.Count++
		}
	}
	return r, true
}

// rests returns the records that the next round begins with.
func (w *watch) rests() (list []history.Record) {
	for n, last := range w.last {
		if last != "" {
			list = append(list, history.Record{
				Kind: history.Rest, Stream: "jobs", Processor: "check", Partition: n, IDs: []string{last}, Epoch: w.own[n].Epoch,
			})
		}
	}
	return list
}
