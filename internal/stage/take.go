package stage

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// An Ask is how many visits of a stage, or of Touch, a Take begins at most: at most 128 of all stages
// together. With 0 it only tells when the next one is due.
type Ask struct {
	Stage string
	Most  int
}

// A Take begins visits that are due in one partition. Repeated, it begins others: those of a lost reply
// are in Runs.
type Take struct {
	Partition int
	Fence     string // of the ownership: its lock value
	Number    int64  // no other Take or Begin of the ownership has it
	Asks      []Ask
	Sleep     bool  // wakes are wanted if nothing is due
	MaxBytes  int64 // at least 1; the last entity may go beyond it

	Next    time.Duration // until the next is due: 0 if more are, negative if none waits
	Dropped int64         // visits of entities that are not there
	Running int64         // visits that ran before
	Passed  int64         // visits that were put again while they run; more may follow behind others that are due
	More    []string      // stages of which more are due
	Visits  []Visit
	Err     error
}

// A Visit is one that runs.
type Visit struct {
	Stage, ID string
	At        int64  // its time, in ms since 1970
	Number    int64  // of the call that began it
	Alone     bool   // known of Runs
	Puts      string // how often visits of the partition had been put, as the Take that began it tells
	Failures  string // of the entity in all stages and of its touch, as Fails and Dies have stored them: "\n<stage> <text>" each
	Entity    Entity // zero if an earlier visit of the Take has it, and in an external set
}

// Take runs takes.
func (s *Set) Take(ctx context.Context, takes ...*Take) {
	calls := make([]*store.ScriptCall, len(takes))
	for i, t := range takes {
		calls[i] = s.takeCall(t)
	}
	s.run(ctx, calls, func(i int, texts []string, err error) { takes[i].Err = takes[i].read(texts, err) })
}

func (s *Set) takeCall(t *Take) *store.ScriptCall {
	n := t.Partition
	keys := []string{s.place(n).Own, s.key("visitrun", n, ""), s.key("visitfail", n, ""), s.key("ent", n, "")}
	args := []any{t.Fence, truth(!s.external), truth(t.Sleep), t.MaxBytes, t.Number, len(s.stages) + 1, Touch}
	for _, stage := range s.stages {
		args = append(args, stage)
	}
	for _, a := range t.Asks {
		keys, args = append(keys, s.queue(n, a.Stage)), append(args, a.Stage, a.Most)
	}
	return &store.ScriptCall{Script: takeScript, Keys: keys, Args: args}
}

func truth(set bool) string {
	if set {
		return "1"
	}
	return ""
}

func (t *Take) read(texts []string, err error) error {
	if err != nil {
		return err
	}
	if len(texts)%5 != 1 || len(texts) < 6 {
		return fmt.Errorf("unexpected reply of %d texts", len(texts))
	}
	var next int64
	for i, n := range []*int64{&next, &t.Dropped, &t.Running, &t.Passed} {
		if *n, err = strconv.ParseInt(texts[i], 10, 64); err != nil {
			return err
		}
	}
	t.Next, t.More = time.Duration(next)*time.Millisecond, strings.Fields(texts[4])
	puts := texts[5]
	for one := texts[6:]; len(one) > 0 && err == nil; one = one[5:] {
		v := Visit{Stage: one[0], ID: one[1], Number: t.Number, Puts: puts, Failures: one[3]}
		if v.At, err = strconv.ParseInt(one[2], 10, 64); err == nil {
			v.Entity, err = entityOf(one[4])
		}
		t.Visits = append(t.Visits, v)
	}
	return err
}

// Failures returns what is stored of the failures of visits, "" for none, in their order.
func (s *Set) Failures(ctx context.Context, n int, visits []Visit) ([]string, error) {
	fields := make([]string, len(visits))
	for i, v := range visits {
		fields[i] = v.Stage + " " + v.ID
	}
	out := make([]string, len(visits))
	if len(visits) == 0 {
		return out, nil
	}
	stored, err := s.client.Retrying.HMGet(ctx, s.key("visitfail", n, ""), fields...).Result()
	for i, one := range stored {
		out[i], _ = one.(string)
	}
	return out, err
}

// Runs returns the visits that run in a partition, without entities and failures.
func (s *Set) Runs(ctx context.Context, n int) (runs []Visit, err error) {
	fields, err := s.client.Retrying.HGetAll(ctx, s.key("visitrun", n, "")).Result()
	for field, value := range fields {
		v := Visit{}
		v.Stage, v.ID, _ = strings.Cut(field, " ")
		at, number, _ := strings.Cut(value, " ")
		number, v.Alone = strings.CutPrefix(number, "alone ")
		if v.At, err = strconv.ParseInt(at, 10, 64); err == nil {
			v.Number, err = strconv.ParseInt(number, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("run %q: %w", field, err)
		}
		runs = append(runs, v)
	}
	return runs, err
}
