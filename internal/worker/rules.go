package worker

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/rules"
)

const (
	// rulesPatience bounds one look at the rules.
	rulesPatience = 2 * time.Second
	// idleRules is how long the keeper waits when no rule will end by itself.
	idleRules = time.Hour
)

// A rulesKeeper applies pauses and blocks to ownerships. It reads the rules when a control
// message, a heartbeat or a new ownership asks for them. While the rules cannot be read, the
// last known ones hold.
//
// An ownership begins held back, and opens with the first reading requested after its lock was
// obtained. So the next owner of a partition with a free lock follows the present rules; see
// store.NotPausedYet.
type rulesKeeper struct {
	w    *Worker
	wake signal

	// known are the generations of the rules applied to every ownership; nil at first.
	known atomic.Pointer[rules.Generations]

	mu         sync.Mutex
	partitions map[*partition]*member
	paused     map[*partition]bool // logged as paused
	set        rules.Set
	asked      int64     // when the last reading was requested, by monotime; 0: there was none
	read       int64     // when its reply arrived
	server     time.Time // the server's time between these
	logged     string
}

func newRulesKeeper(w *Worker) *rulesKeeper {
	return &rulesKeeper{
		w: w, wake: newSignal(), partitions: map[*partition]*member{}, paused: map[*partition]bool{},
	}
}

func (k *rulesKeeper) look() { k.wake.set() }

// sawGenerations asks for a reading if these generations, as far as they could be read, differ from
// the applied ones.
func (k *rulesKeeper) sawGenerations(seen rules.Generations) {
	known := k.generations()
	if seen.Pauses >= 0 && seen.Pauses != known.Pauses || seen.Blocks >= 0 && seen.Blocks != known.Blocks {
		k.look()
	}
}

// generations returns those of the rules applied to every ownership.
func (k *rulesKeeper) generations() rules.Generations {
	if known := k.known.Load(); known != nil {
		return *known
	}
	return rules.Generations{}
}

// admit adds an ownership, which stays held back until the rules were read.
func (k *rulesKeeper) admit(m *member, p *partition) {
	k.mu.Lock()
	k.partitions[p] = m
	k.mu.Unlock()
	k.look()
}

func (k *rulesKeeper) dismiss(p *partition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.partitions, p)
	delete(k.paused, p)
}

// run applies the rules to ownerships until ctx ends.
func (k *rulesKeeper) run(ctx context.Context) {
	retry := outage.New(k.w.log, "pauses and blocks", &k.w.count.Errors)
	timer := time.NewTimer(idleRules)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			// A rule has ended by itself.
		case <-k.wake:
			for ctx.Err() == nil {
				err := k.fetch(ctx)
				if err == nil {
					retry.Recovered()
					break
				}
				retry.Wait(ctx, err)
			}
		}
		timer.Reset(k.apply())
	}
}

func (k *rulesKeeper) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rulesPatience)
	defer cancel()
	asked := monotime.Now()
	set, server, err := k.w.client.Rules(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set, k.asked, k.read, k.server = set, asked, monotime.Now(), server
	return nil
}

// apply applies the known rules to every ownership, and returns the time until one of the rules
// ends by itself.
//
// The order matters. Generations are published after all flags were set. An executor that
// reports them looks at the flags and then at which consumers run, while a consumer stores
// that it runs and then looks at its flag. If the executor sees no consumer run, then every
// consumer that comes later sees its flag.
func (k *rulesKeeper) apply() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked == 0 {
		return idleRules
	}
	// The server's time is at least this, so a rule never ends early.
	now := k.server.Add(time.Duration(monotime.Now() - k.read))
	for p, m := range k.partitions {
		if k.asked < p.since {
			continue
		}
		closed := func(name string) bool { return len(k.set.Holding(p.keys.Stream, name, p.keys.Number, now)) > 0 }
		held := closed(p.keys.Processor)
		p.calls.hold(&p.pauseGate, held, closed)
		if held != k.paused[p] {
			k.note(m, p, held)
		}
	}
	k.log(now)
	known := k.set.Generations
	if k.generations() != known {
		k.known.Store(&known)
		for _, x := range k.w.executors {
			if m := x.member(); m != nil {
				m.heartbeat.soon()
			}
		}
	}
	end := k.set.NextEnd(now)
	if end.IsZero() {
		return idleRules
	}
	return min(end.Sub(now), idleRules)
}

func (k *rulesKeeper) note(m *member, p *partition, held bool) {
	if held {
		k.paused[p] = true
		m.logBatch.note(slog.LevelInfo, paused, p.keys.Number, nil)
		return
	}
	delete(k.paused, p)
	m.logBatch.note(slog.LevelInfo, resumed, p.keys.Number, nil)
}

// log logs the rules that concern this worker when they change.
func (k *rulesKeeper) log(now time.Time) {
	var texts []string
	for _, r := range k.set.InForce(now) {
		for _, x := range k.w.executors {
			if slices.ContainsFunc(append([]string{x.p.Name}, x.p.Gates...), func(name string) bool { return r.Scope.Includes(x.p.Stream, name) }) {
				texts = append(texts, r.String())
				break
			}
		}
	}
	text := strings.Join(texts, "; ")
	if text == k.logged {
		return
	}
	k.logged = text
	k.w.log.Info("rules in force", "rules", cmp.Or(text, "none"))
}
