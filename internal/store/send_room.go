package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Policies for a full partition.
const (
	OverflowReject     = "reject"      // they are refused
	OverflowBlock      = "block"       // their sender waits
	OverflowDropOldest = "drop-oldest" // the oldest entries make room, acked or not
)

var (
	// ErrStreamFull is returned if a partition has its maximal length.
	ErrStreamFull = errors.New("stream is full")
	// ErrSelfBlock is returned if a processor would wait for room in its own stream, so for itself.
	ErrSelfBlock = errors.New("a processor cannot wait for room in the stream that it processes")
)

// A FullError names what keeps a partition full. ErrStreamFull is in its chain.
type FullError struct {
	Stream       string
	Partition    int
	Size, Length int64
	Wanted       int    // records that were to be appended
	Processor    string // that needs the oldest entry, "" if none is registered
	Started      bool   // it has a consumer group
	Foreign      bool   // it is no registered processor, but the name of a consumer group
	Holder       string // of a numbered log, that needs the oldest entry; then there is no Processor
}

// Error names the partition, what keeps it full, and what helps.
func (e *FullError) Error() string { return e.why() + "; " + help.StreamFull }

func (e *FullError) why() string {
	msg := fmt.Sprintf("partition %d of stream %s is full, %d of %d entries: ", e.Partition, e.Stream, e.Length, e.Size)
	if e.Length < e.Size {
		msg = fmt.Sprintf("partition %d of stream %s has %d of %d entries and no room for %d more: ", e.Partition, e.Stream, e.Length, e.Size, e.Wanted)
	}
	name := e.Stream + "/" + e.Processor
	switch {
	case e.Length+int64(e.Wanted) <= e.Size:
		return fmt.Sprintf("partition %d of stream %s has %d of %d entries: others took the room that was made", e.Partition, e.Stream, e.Length, e.Size)
	case e.Holder != "":
		return msg + fmt.Sprintf("holder %s is %d behind", e.Holder, e.Length)
	case e.Processor == "":
		return msg + "no processor is registered that would process them; start a worker"
	case e.Foreign:
		return msg + fmt.Sprintf("consumer group %s, of no processor of this app, is %d behind; `stream info %s` tells whose it is, `processor rm %s` lets it go", e.Processor, e.Length, e.Stream, name)
	case !e.Started:
		return msg + fmt.Sprintf("processor %s has no consumer group; start it, or remove it with `processor rm %s`", e.Processor, name)
	}
	return msg + fmt.Sprintf("processor %s is %d behind", e.Processor, e.Length)
}

// Unwrap returns ErrStreamFull.
func (e *FullError) Unwrap() error { return ErrStreamFull }

// roomTries is how often others may take the room made for a batch before the batch is refused, if
// its sender does not wait.
const roomTries = 10

// makeRoom goes on with partitions that had no room for a batch. It returns those to try again and,
// after a pause, those still full; the others have failed.
func (c Producer) makeRoom(ctx context.Context, full []*part) (open, still []*part) {
	for i, r := range c.room(ctx, full) {
		p, policy := full[i], full[i].meta.Overflow
		fits := r.Length+int64(p.need) <= p.meta.MaxLen || p.meta.MaxLen <= 0
		if fits {
			p.tries++
		}
		switch {
		case r.err != nil && ctx.Err() != nil && p.full != nil:
			p.out.Err = waited(ctx, p.full)
		case r.err != nil:
			p.out.Err = r.err // nothing of the batch was appended, whatever became of this
		case fits && (p.tries <= roomTries || policy == OverflowBlock || policy == OverflowDropOldest), r.dropped > 0:
			open = append(open, p)
		case policy != OverflowBlock:
			p.out.Err = &r.FullError
		case p.Self:
			p.out.Err = fmt.Errorf("%w: %w", ErrSelfBlock, &r.FullError)
		case ctx.Err() != nil:
			p.out.Err = waited(ctx, &r.FullError)
		default:
			p.full = &r.FullError
			still = append(still, p)
		}
	}
	if len(open) > 0 || len(still) == 0 || still[0].wait.sleep(ctx) {
		return open, still
	}
	for _, p := range still {
		p.out.Err = waited(ctx, p.full)
	}
	return nil, nil
}

// withRoom repeats try as Append would. try appends one entry, given the length that the partition
// may have, and fails with ErrFull if there is no room.
func (c Producer) withRoom(ctx context.Context, stream string, partition int, try func(size int64) error) error {
	p := &part{Append: &Append{Stream: stream, Partition: partition}, log: c.keys.Partition(stream, partition), out: &Appended{}, need: 1}
	var err error
	if p.meta, err = MetaStore(c).recentMeta(ctx, stream); err == nil {
		err = p.meta.CheckSend(stream)
	}
	if err != nil {
		return err
	}
	for {
		if err := try(p.meta.MaxLen); !errors.Is(err, ErrFull) {
			return err
		}
		for open, full := []*part(nil), []*part{p}; len(open) == 0; {
			open, full = c.makeRoom(ctx, full)
			if p.out.Err != nil {
				return p.out.Err
			}
		}
	}
}

// waited returns the error of a sender whose context ended.
func waited(ctx context.Context, full *FullError) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w (%w) while waiting for room: %w", ctx.Err(), cause, full)
	}
	return fmt.Errorf("%w while waiting for room: %w", ctx.Err(), full)
}

// tryRoom makes room for what a partition needs, once, as its stream's overflow policy says, but does not drop what was not
// processed under any other: nil is that there is some, or others have just taken it.
func (c Producer) tryRoom(ctx context.Context, p *part) error {
	switch r := c.room(ctx, []*part{p})[0]; {
	case r.err != nil:
		return r.err
	case p.meta.MaxLen <= 0 || r.Length+int64(p.need) <= p.meta.MaxLen || r.dropped > 0:
		return nil
	default:
		return &r.FullError
	}
}

// roomsPerTrip is how many scripts that make room run in a row: each looks at all groups.
const roomsPerTrip = 16

// A roomReply is the result of making room for a batch.
type roomReply struct {
	FullError // to report if the partition stays full
	dropped   int64
	err       error
}

// room reads the metadata again, as it may have changed, and makes room as it allows.
func (c Producer) room(ctx context.Context, full []*part) []roomReply {
	out := make([]roomReply, len(full))
	calls := make([]*redisconn.Call, 0, len(full))
	at := make([]int, 0, len(full)) // of each call
	fresh := map[string]error{}
	for i, p := range full {
		err, known := fresh[p.Stream]
		if !known {
			_, _, err = MetaStore(c).LoadMeta(ctx, p.Stream)
			fresh[p.Stream] = err
		}
		if err == nil {
			p.meta, err = MetaStore(c).recentMeta(ctx, p.Stream)
		}
		if out[i].err = err; err == nil {
			p.need = int(min(int64(p.need), max(p.meta.MaxLen, 1)))
			calls, at = append(calls, c.roomCall(ctx, p)), append(at, i)
		}
	}
	persist(ctx, func() error { // each reply carries its error
		redisconn.PipelineInTurns(ctx, c.NoRetry, calls, roomsPerTrip)
		var errs []error
		for _, call := range calls {
			errs = append(errs, classify(call.Reply.Err()))
		}
		return errors.Join(errs...)
	})
	for k, call := range calls {
		out[at[k]] = parseRoom(full[at[k]], call.Reply)
	}
	return out
}

func (c Producer) roomCall(ctx context.Context, p *part) *redisconn.Call {
	drop := "0"
	if p.meta.Overflow == OverflowDropOldest {
		drop = "1"
	}
	keys, args := []string{p.log}, []any{p.meta.MaxLen, p.need, drop, ExecutorIDLength}
	for _, name := range p.meta.Processors {
		keys = append(keys, c.keys.Ownership(p.Stream, name, p.Partition))
		args = append(args, name)
	}
	if p.meta.Kind == KindTopic {
		return redisconn.ScriptCall(ctx, heldRoomScript, append(keys, Holders(c.keys, p.Stream, p.Partition)), args...)
	}
	return redisconn.ScriptCall(ctx, roomScript, keys, args...)
}

func parseRoom(p *part, reply *redis.Cmd) (r roomReply) {
	r.FullError = FullError{Stream: p.Stream, Partition: p.Partition, Size: p.meta.MaxLen, Wanted: p.need}
	v, err := reply.Slice()
	if err != nil {
		r.err = fmt.Errorf("make room: %w", classify(err))
		return r
	}
	var trimmed, started int64
	if err := scan(v, &r.Length, &trimmed, &r.dropped, &r.Processor, &started); err != nil {
		r.err = fmt.Errorf("make room: %w", err)
	}
	r.Started, r.Foreign = started != 0, started == 2
	if strings.Contains(r.Processor, ":") {
		r.Processor, r.Holder = "", r.Processor
	}
	return r
}

// A pacer waits 20 ms to 500 ms, longer each time, and rarely as long as the senders beside it.
type pacer struct{ most time.Duration }

// sleep waits, and returns false if ctx ended first.
func (p *pacer) sleep(ctx context.Context) bool {
	p.most = min(max(2*p.most, 40*time.Millisecond), 500*time.Millisecond)
	return monotime.Sleep(ctx, p.most/2+rand.N(p.most/2))
}
