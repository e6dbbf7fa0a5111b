package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
	"github.com/runnel-go/runnel/rebalance"
)

const partitionsTold = 5 // unreadable partitions reported one by one

// app checks that the app's keys outside of partitions can be read, and that its workers can read.
func (d *doctor) app(ctx context.Context) error {
	l, before := newLook(d.c, 1), len(d.out)
	if err := l.read(ctx, d.c.Keys().Leader()); err != nil {
		if redisconn.Denied(err) {
			d.found(err, "")
			return nil
		}
		return err
	}
	if _, err := l.leader(); err != nil {
		d.found(err, "until that is done no worker leads, and leader-only tasks run nowhere")
	}
	if err := l.shared.RulesErr; err != nil {
		d.found(err, "until that is done what workers know holds, no change reaches them, and partitions wait that find a new owner")
	}
	if err := l.shared.StreamsErr; err != nil {
		d.found(err, "delete the key: workers and senders write it anew")
		return nil
	}
	streams := l.shared.Streams
	if err := l.prepare(ctx, streams); err != nil {
		return err
	}
	processors, partitions, places := 0, map[string]int{}, []store.Partition(nil)
	for _, stream := range streams {
		m, _, err := l.meta(stream)
		if err != nil {
			d.found(err, "workers of this stream cannot start, and nothing can be sent to it, until that is done")
			continue
		}
		partitions[stream] = m.Partitions
		for _, processor := range m.Processors {
			d.outputs(ctx, stream, processor, m, d.members(l, stream, processor))
			processors++
		}
		d.tables(ctx, stream, m, func(processor string) bool { return d.members(l, stream, processor) })
		places = append(places, allPlaces(d.c, stream, m)...)
	}
	if err := d.partitions(ctx, places); err != nil {
		return err
	}
	more, err := d.c.MorePartitions(ctx, partitions)
	if err != nil {
		d.found(err, "")
	}
	for _, stream := range slices.Sorted(maps.Keys(more)) {
		d.say("app", LevelProblem, "stop the workers and senders of one of the two until they agree", "%v", more[stream])
	}
	if len(d.out) == before {
		d.say("app", LevelOK, "", "streams: %d, processors: %d; metadata, memberships and partitions can be read", len(streams), processors)
	}
	return nil
}

// found reports why a key cannot be read.
func (d *doctor) found(err error, advice string) {
	if redisconn.Denied(err) {
		d.say("app", LevelUnknown, "let a user look who may read the app's keys; "+help.MissingRights, "%v", err)
		return
	}
	d.say("app", LevelProblem, advice, "%v", err)
}

// partitions checks whether partitions can be read, as processors see them.
func (d *doctor) partitions(ctx context.Context, places []store.Partition) error {
	views, err := d.c.Views(ctx, places)
	if redisconn.Denied(err) {
		d.found(err, "")
		return nil
	}
	if err != nil {
		return err
	}
	unread := 0
	for _, v := range views {
		if redisconn.Denied(v.Err) { // so, most likely, are all others
			d.found(v.Err, "")
			return nil
		}
		if v.Err == nil {
			continue
		}
		if unread++; unread <= partitionsTold {
			d.found(v.Err, "until that is done this partition stands; the others are not affected")
		}
	}
	if more := unread - partitionsTold; more > 0 {
		d.say("app", LevelProblem, "status tells of each why; "+help.UnreadableKey, "and %d more partitions cannot be read", more)
	}
	return nil
}

// tables checks whether the tables of a stream can be read, and whether something keeps them up.
func (d *doctor) tables(ctx context.Context, stream string, m store.Meta, run func(processor string) bool) {
	for _, name := range slices.Sorted(maps.Keys(m.Tables)) {
		size, err := d.c.TableSize(ctx, stream, name, m.Tables[name], m.Partitions)
		processor := m.Tables[name].Processor
		switch {
		case err != nil:
			d.found(err, "until that is done the processor of the table commits nothing in this partition")
		case !slices.Contains(m.Processors, processor):
			d.say("app", LevelWarning, fmt.Sprintf("start a worker with that processor, or remove the table: table rm %s/%s", stream, name),
				"stream %s: table %s: its processor %s is not registered any more, and nothing keeps its rows (%d) up", stream, name, processor, size.Rows)
		case size.Overdue > 0 && !run(processor):
			d.say("app", LevelWarning, "start a worker with that processor",
				"stream %s: table %s: the time of %s has come, and no worker runs processor %s, which would tell or remove them", stream, name, words.Plural(size.Overdue, "row"), processor)
		}
	}
}

// outputs checks whether something waits in the outboxes of a processor that no worker brings away.
func (d *doctor) outputs(ctx context.Context, stream, processor string, m store.Meta, run bool) {
	if run || !HasOutboxes(d.c, m, processor) {
		return
	}
	waiting, err := d.c.Outputs(ctx, d.c.Partitions(stream, processor, m.Numbers()))
	if err != nil {
		d.found(err, "until that is done the processor emits nothing in this partition")
		return
	}
	total := int64(0)
	for _, n := range waiting {
		total += n
	}
	if total > 0 {
		d.say("app", LevelProblem, "start a worker; "+help.NoWorker, "stream %s: processor %s: %s in outboxes, and no worker runs it", stream, processor, waits(total))
	}
}

// members checks the membership of a processor and the heartbeats of its members, and reports whether a worker runs it, as far
// as is known.
func (d *doctor) members(l *look, stream, processor string) (run bool) {
	_, members, err := l.members(stream, processor)
	if err != nil {
		d.found(err, "until then no worker can join, and the partitions of a dead one are not taken over")
		return true
	}
	for _, m := range members {
		run = run || m.Alive
		if len(m.NotReading) == 0 {
			continue
		}
		since := slices.MinFunc(slices.Collect(maps.Values(m.NotReading)), time.Time.Compare)
		d.say("app", LevelProblem, "look at its log for `op=reads`; it gives them up after its lease; "+help.NotReading,
			"stream %s: processor %s: worker %s is not reading partitions %s since %s", stream, processor, m.Worker,
			rebalance.Ranges(slices.Sorted(maps.Keys(m.NotReading))), since.Format(time.RFC3339))
	}
	return run
}
