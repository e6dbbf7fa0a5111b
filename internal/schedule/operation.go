package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/jobs"
)

// Kinds of operations.
const (
	OpApply    = "apply"
	OpRemove   = "remove"
	OpPause    = "pause"
	OpResume   = "resume"
	OpActivate = "activate"
	OpClear    = "clear"
	OpCancel   = "cancel"
	OpBackfill = "backfill"
	OpRestore  = "restore" // of the numbers of operations, by its own
)

// opsKept is how many operations are remembered.
const opsKept = 1000

// partition0 is the partition of operations and jobs.
const partition0 = 0

// An Op is an operation: what is asked for, and what became of it. The owner of partition 0 does them one after
// the other.
type Op struct {
	Number   int64         `json:"operation,omitempty"`
	ID       string        `json:"id"`
	Kind     string        `json:"op"`
	Job      string        `json:"job"`             // of OpApply the names of all, behind commas
	Defs     []*jobs.Job   `json:"defs,omitempty"`  // of OpApply, until it is done
	FromCode bool          `json:"code,omitempty"`  // of OpApply: by a worker that starts
	Tasks    []string      `json:"tasks,omitempty"` // names; none: those that hang on triggers
	Trigger  string        `json:"trigger,omitempty"`
	Time     time.Time     `json:"time,omitzero"`
	From     time.Time     `json:"from,omitzero"`
	To       time.Time     `json:"to,omitzero"` // exclusive
	Order    jobs.CatchUp  `json:"order,omitempty"`
	Only     bool          `json:"only,omitempty"`
	Force    bool          `json:"force,omitempty"`
	Priority jobs.Priority `json:"priority,omitempty"`
	For      jobs.Duration `json:"for,omitzero"`  // of OpPause
	Rev      int64         `json:"rev,omitempty"` // of OpResume: only of this pause
	By       string        `json:"by,omitempty"`
	Why      string        `json:"why,omitempty"`
	At       time.Time     `json:"at"`
	Done     time.Time     `json:"done,omitzero"` // none: it waits for a worker
	Refused  bool          `json:"refused"`
	Outcome  string        `json:"outcome,omitempty"`
}

// ApplyOp returns an operation that puts jobs in place of those of the same names: of all or of none.
func ApplyOp(defs ...*jobs.Job) (*Op, error) {
	text, err := json.Marshal(defs)
	if err == nil && len(text) > jobs.MostBytes {
		err = fmt.Errorf("together the jobs have %d bytes as they are stored, at most %d: apply them in parts", len(text), jobs.MostBytes)
	}
	names := make([]string, len(defs))
	for i, def := range defs {
		names[i] = def.Name
	}
	return &Op{Kind: OpApply, Job: strings.Join(names, ", "), Defs: defs}, err
}

// A Ledger is the jobs of a scheduler, and the operations on them. Its methods block and may be called concurrently, as those of
// Scheduler.
type Ledger struct{ s *Scheduler }

// Ledger returns the ledger of the scheduler.
func (s *Scheduler) Ledger() Ledger { return Ledger{s} }

// Submit takes an operation down and returns its number, which is behind op.Number; one with the ID of an earlier one is that one.
// Without an ID, or a time, it gets one.
func (l Ledger) Submit(ctx context.Context, op *Op) (number int64, err error) {
	op.ID, op.At = cmp.Or(op.ID, rand.Text()), cmp.Or(op.At, time.Now()).UTC().Truncate(time.Millisecond)
	text, err := json.Marshal(op)
	if err != nil {
		return 0, err
	}
	err = l.do(ctx, "submit", obj{"id": op.ID, "op": string(text), "behind": op.Number}, &number)
	return number, err
}

func (l Ledger) do(ctx context.Context, script string, ask, answer any) error {
	return l.s.do(ctx, script, partition0, ask, answer, l.s.key("sops", partition0), l.s.key("sjobs", partition0))
}

// Op returns an operation, nil if it is not remembered.
func (l Ledger) Op(ctx context.Context, number int64) (*Op, error) {
	text, err := l.s.client.Retrying.HGet(ctx, l.s.key("sops", partition0), strconv.FormatInt(number, 10)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return opOf(number, text)
}

func opOf(number int64, text string) (op *Op, err error) {
	if err := json.Unmarshal([]byte(text), &op); err != nil {
		return nil, fmt.Errorf("operation %d is not readable: %w", number, err)
	}
	op.Number = number
	return op, nil
}

// Numbers returns the number of the last operation, and of the last one that changed each partition, 0 for none.
func (l Ledger) Numbers(ctx context.Context, partitions int) (last int64, known []int64, err error) {
	pipe := l.s.client.Retrying.Pipeline()
	all := []*redis.StringCmd{pipe.HGet(ctx, l.s.key("sops", partition0), "seq")}
	for n := range partitions {
		all = append(all, pipe.HGet(ctx, l.s.key("sdef", n), "rev"))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, nil, err
	}
	for _, text := range all {
		n, _ := text.Int64() // none is 0
		known = append(known, n)
	}
	return known[0], known[1:], nil
}

// A RefusedError is the outcome of an operation that did nothing.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// opPoll is how often WaitOp looks.
const opPoll = 50 * time.Millisecond

// WaitOp blocks until the operation of op.Number is done or ctx ends. Then op is what is stored of it.
func (l Ledger) WaitOp(ctx context.Context, op *Op) error {
	for {
		stored, err := l.Op(ctx, op.Number)
		if err != nil {
			return err
		}
		if stored == nil {
			return fmt.Errorf("operation %d is not remembered", op.Number)
		}
		switch *op = *stored; {
		case op.Refused:
			return &RefusedError{op.Outcome}
		case !op.Done.IsZero():
			return nil
		}
		select {
		case <-time.After(opPoll):
		case <-ctx.Done():
			return fmt.Errorf("operation %d is stored, and no worker has done it yet: %w: does a worker of the app run?", op.Number, ctx.Err())
		}
	}
}

// Ops returns the last operations, at most so many, the newest first.
func (l Ledger) Ops(ctx context.Context, most int) ([]*Op, error) {
	all, err := l.s.client.Retrying.HGetAll(ctx, l.s.key("sops", partition0)).Result()
	if err != nil {
		return nil, err
	}
	var ops []*Op
	for field, text := range all {
		number, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			continue // a number by its ID, or the counter
		}
		op, err := opOf(number, text)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	slices.SortFunc(ops, func(a, b *Op) int { return int(b.Number - a.Number) })
	return ops[:min(len(ops), most)], nil
}

const opPrefix = "op:"

// OpOf returns the number of the operation that an ID of the heap names, 0 for none.
func OpOf(id string) int64 {
	if text, is := strings.CutPrefix(id, opPrefix); is {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	return 0
}

// Settle stores what became of an operation.
func (l Ledger) Settle(ctx context.Context, fence string, op *Op) error {
	text, err := json.Marshal(op)
	if err != nil {
		return err
	}
	return l.do(ctx, "settle", obj{"fence": fence, "number": op.Number, "op": string(text), "keep": opsKept, "again": op.Refused && op.FromCode}, nil)
}

// A Job is what is stored of one.
type Job struct {
	V        int       `json:"v"`
	Rev      int64     `json:"rev"` // the operation that made it so
	Def      *jobs.Job `json:"def"`
	Replaced []string  `json:"replaced,omitempty"` // hashes of the last definitions before
	Pause    *Pause    `json:"pause,omitempty"`
	By       string    `json:"by,omitempty"`
	At       int64     `json:"at"` // ms
}

// A Pause is why a job does not go on.
type Pause struct {
	By    string `json:"by,omitempty"`
	Why   string `json:"why,omitempty"`
	At    int64  `json:"at"`              // ms
	Until int64  `json:"until,omitempty"` // ms, 0: until it is resumed

	Number int64 `json:"op"` // the operation
}

// version of stored jobs.
const version = 1

// Jobs returns the jobs by name.
func (l Ledger) Jobs(ctx context.Context) (map[string]*Job, error) {
	stored, err := l.s.client.Retrying.HGetAll(ctx, l.s.key("sjobs", partition0)).Result()
	if err != nil {
		return nil, err
	}
	all := map[string]*Job{}
	for name, text := range stored {
		_, text, _ := strings.Cut(text, " ")
		j := &Job{}
		if err := json.Unmarshal([]byte(text), j); err != nil {
			return nil, fmt.Errorf("job %s is not readable: %w", name, err)
		}
		if j.V != version || j.Def == nil {
			return nil, fmt.Errorf("job %s is stored as version %d: this release knows %d", name, j.V, version)
		}
		all[name] = j
	}
	return all, nil
}

// StoreJobs stores jobs as an operation made them; nil deletes one. Its error is ErrLater if a later operation has been there.
func (l Ledger) StoreJobs(ctx context.Context, fence string, operation int64, all map[string]*Job) error {
	for names := range slices.Chunk(slices.Sorted(maps.Keys(all)), PerCall) {
		stored, done := map[string]string{}, false
		for _, name := range names {
			stored[name] = ""
			if j := all[name]; j != nil {
				j.V = version
				text, err := json.Marshal(j)
				if err != nil {
					return err
				}
				stored[name] = fmt.Sprintf("%d %s", operation, text)
			}
		}
		if err := l.do(ctx, "jobs", obj{"fence": fence, "operation": operation, "jobs": stored}, &done); err != nil {
			return err
		}
		if !done {
			return ErrLater
		}
	}
	return nil
}
