package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// blockFor is how long a read of a loop written by hand waits on the server, as one
// of Runnel's does.
const blockFor = 2 * time.Second

// newClient returns a client with go-redis' defaults but for the number of connections.
func newClient(t Task) (*redis.Client, error) {
	o, err := redis.ParseURL(t.URL)
	if err != nil {
		return nil, err
	}
	if t.Pool > 0 {
		o.PoolSize = t.Pool
	}
	return redis.NewClient(o), nil
}

// byHand makes a role of a function that uses a client of its own.
func byHand(run func(context.Context, Task, *redis.Client) (Result, error)) func(context.Context, Task) (Result, error) {
	return func(ctx context.Context, t Task) (Result, error) {
		rdb, err := newClient(t)
		if err != nil {
			return nil, err
		}
		defer rdb.Close()
		return run(ctx, t, rdb)
	}
}

const (
	// laneDepth is how many replies a goroutine of a partition may be behind: with
	// COUNT 64 as many events as Runnel reads ahead.
	laneDepth = 4
	// ackDepth is how many parts of replies may wait for the acker, which keeps up with
	// the reader: seldom more than those of one reply do.
	ackDepth = 64
)

// A plain is a loop written by hand with go-redis for the case that nothing breaks: readers that
// share the partitions, each with its own acker.
type plain struct {
	t     Task
	rdb   *redis.Client
	m     *meter
	seen  func(payload string) error       // called with each event, nil: nothing
	lanes map[string]chan []redis.XMessage // by partition, if each has a goroutine
	acks  map[string]chan<- acks           // by partition: the acker of its reader
}

// acks are entries of a partition that were handled.
type acks struct {
	log string
	ids []string
}

// plainDrain processes the backlog of a stream from its beginning with a fresh
// consumer group, which it removes.
func plainDrain(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	if err := createGroups(ctx, rdb, t.logs(), t.Run, "0"); err != nil {
		return nil, err
	}
	p := &plain{t: t, rdb: rdb, m: newMeter(t.Events)}
	p.m.skip = t.ahead(t.Count) // they were read before the first was handled
	if t.Decode {
		p.seen = t.decode
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return p.m.result(), dropGroups(ctx, t, rdb)
}

// run reads until the meter is full, and returns when everything is acked.
func (p *plain) run(ctx context.Context) error {
	p.lanes, p.acks = map[string]chan []redis.XMessage{}, map[string]chan<- acks{}
	logs := p.t.logs()
	var readers, lanes, ackers errgroup.Group
	shares := slices.Collect(slices.Chunk(logs, (len(logs)+p.t.Readers-1)/p.t.Readers))
	var toAckers []chan acks
	for _, mine := range shares {
		done := make(chan acks, ackDepth)
		toAckers = append(toAckers, done)
		for _, log := range mine {
			p.acks[log] = done
			p.lanes[log] = make(chan []redis.XMessage, laneDepth)
		}
		ackers.Go(func() error { return p.ack(ctx, done) })
	}
	for _, mine := range shares {
		readers.Go(func() error { return p.read(ctx, mine) })
	}
	for log, lane := range p.lanes {
		lanes.Go(func() error {
			var err error
			for messages := range lane { // to the end: the reader must not wait
				err = cmp.Or(err, p.handle(log, messages))
			}
			return err
		})
	}
	err := readers.Wait()
	for _, lane := range p.lanes {
		close(lane)
	}
	err = errors.Join(err, lanes.Wait())
	for _, done := range toAckers {
		close(done)
	}
	return errors.Join(err, ackers.Wait())
}

// read reads some partitions until the meter is full.
func (p *plain) read(ctx context.Context, logs []string) error {
	if p.t.Reply {
		return p.readReplies(ctx, logs)
	}
	args, block := newEntries(logs), blockFor
	if p.t.Whole {
		block = -1 // nothing comes later
	}
	for p.m.n.Load() < p.m.want {
		streams, err := p.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: p.t.Run, Consumer: "plain", Streams: args, Count: int64(p.t.Count), Block: block,
		}).Result()
		if errors.Is(err, redis.Nil) {
			if p.t.Whole {
				return nil // others have the rest
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		for _, s := range streams {
			if p.t.Lanes {
				p.lanes[s.Stream] <- s.Messages
			} else if err := p.handle(s.Stream, s.Messages); err != nil {
				return err
			}
		}
	}
	return nil
}

// newEntries are arguments of XREADGROUP for what was not read yet.
func newEntries(logs []string) []string {
	return slices.Concat(logs, slices.Repeat([]string{">"}, len(logs)))
}

// decode decodes a payload as Runnel does, without a copy.
func (t Task) decode(payload string) error {
	var o Order
	return codecNamed(t.Codec).Decode(unsafe.Slice(unsafe.StringData(payload), len(payload)), &o)
}

// handle handles entries of one partition, in order, and has them acked.
func (p *plain) handle(log string, messages []redis.XMessage) error {
	ids := make([]string, len(messages))
	for i, msg := range messages {
		if p.seen != nil {
			data, _ := msg.Values[payloadField].(string)
			if err := p.seen(data); err != nil {
				return err
			}
		}
		p.m.sleep(p.t.Work)
		p.m.add(1)
		ids[i] = msg.ID
	}
	p.acks[log] <- acks{log, ids}
	return nil
}

// ack acks what has gathered, with one command per partition, until done is closed.
func (p *plain) ack(ctx context.Context, done <-chan acks) error {
	for first := range done {
		gathered := map[string][]string{first.log: first.ids}
		for more := len(done); more > 0; more-- {
			if a, ok := <-done; ok {
				gathered[a.log] = append(gathered[a.log], a.ids...)
			}
		}
		pipe := p.rdb.Pipeline()
		for log, ids := range gathered {
			pipe.XAck(ctx, log, p.t.Run, ids...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
	return nil
}

func createGroups(ctx context.Context, rdb *redis.Client, logs []string, group, from string) error {
	pipe := rdb.Pipeline()
	for _, log := range logs {
		pipe.XGroupCreateMkStream(ctx, log, group, from)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("create group %s: %w", group, err)
	}
	return nil
}

// dropGroups removes the groups of a task. It is an error if not all was acked.
func dropGroups(ctx context.Context, t Task, rdb *redis.Client) error {
	for _, log := range t.logs() {
		pending, err := rdb.XPending(ctx, log, t.Run).Result()
		if err != nil {
			return fmt.Errorf("look at group %s: %w", t.Run, err)
		}
		if pending.Count > 0 {
			return fmt.Errorf("%d events of %s were not acked", pending.Count, log)
		}
		if err := rdb.XGroupDestroy(ctx, log, t.Run).Err(); err != nil {
			return fmt.Errorf("destroy group %s: %w", t.Run, err)
		}
	}
	return nil
}
