package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const handlersAbout = "A backlog of 100-byte payloads in 16 partitions and a handler that does nothing or sleeps, so that 16 " +
	"events are in progress at once. By hand is a goroutine for each partition, with one reader for all or a reader for each. " +
	"It acks what it has read at once when all of that is handled, 64 events; Runnel acks each event. " +
	"How long a short sleep really takes depends on what else the process does, so it is measured, too: " +
	"the share of time in which handlers were in use says more than the ratio of rates."

func planHandlers(ctx context.Context, b *Bench) (*Plan, error) {
	backlog := b.packed()
	backlog.Events = b.scale(250_000, 40_000)
	if err := fill(ctx, b.rdb, backlog); err != nil {
		return nil, err
	}
	p := &Plan{Columns: []Column{rateColumn, cpuColumn, sleepColumn}}
	for _, h := range []struct {
		name   string
		work   time.Duration
		events int
	}{
		{"0", 0, backlog.Events},
		{"100 µs", 100 * time.Microsecond, b.scale(80_000, 8_000)},
		{"1 ms", time.Millisecond, b.scale(16_000, 4_000)},
	} {
		t := backlog
		t.Events, t.Work, t.Whole = h.events, h.work, h.events == backlog.Events
		if err := b.compare(ctx, p, h.name, t.runnel("raw"), laneSides(t), stats.Bar{}); err != nil {
			return nil, err
		}
		if h.work > 0 {
			p.Claims = append(p.Claims, busy("Raw, "+h.name), busy("by hand, "+h.name))
		}
	}
	return p, nil
}

// busy is how much of the time the handlers of a side are asleep, of all the time
// that they could be: the rate against 16 / (the sleep as they measure it).
func busy(side string) Claim {
	return Claim{Name: side + ", handlers in use", Unit: "%", Of: func(r Round) float64 {
		return r[side]["rate"] * r[side]["sleep"] / 1e6 / drainPartitions * 100
	}}
}

// laneSides are loops by hand with a goroutine for each partition.
func laneSides(t Task) []Side {
	t.Role, t.Count = "plain-drain", 64
	one, each := t, t
	one.Lanes, one.Readers = true, 1
	each.Readers, each.Pool = drainPartitions, 2*drainPartitions+10
	return []Side{{Name: "by hand, one reader", Task: one}, {Name: "by hand, a reader for each", Task: each}}
}

const payloadsAbout = "A backlog of payloads of 1 KB and of 64 KB in 16 partitions, read by group and by position, against the best loop by hand for each."

func planPayloads(ctx context.Context, b *Bench) (*Plan, error) {
	p := &Plan{Columns: []Column{rateColumn, cpuColumn}}
	for _, size := range []struct {
		name, stream  string
		bytes, events int
		counts        []int
		bar           stats.Bar
	}{
		{"1 KB", "kilo", 1 << 10, b.scale(100_000, 10_000), []int{64, 256}, stats.Bar{}},
		{"64 KB", "large", 64 << 10, b.scale(16_000, 600), []int{4, 16, 64}, atLeast(0.85)},
	} {
		t := b.packed()
		t.Stream, t.Size, t.Events = size.stream, size.bytes, size.events
		if err := fill(ctx, b.rdb, t); err != nil {
			return nil, err
		}
		if err := b.compare(ctx, p, size.name, t.runnel("raw"), plainSides(t, size.counts...), size.bar); err != nil {
			return nil, err
		}
		if err := b.compare(ctx, p, size.name+" by position", t.runnel("position"), positionSides(t, []int{1, 16}, size.counts), size.bar); err != nil {
			return nil, err
		}
	}
	return p, nil
}

const partitionsAbout = "The same backlog of 100-byte payloads spread over 16, 256 and 1 024 partitions, processed by one worker. " +
	"The rate counts from the first handled event, so it contains the takeover of the partitions that come after the first."

func planPartitions(ctx context.Context, b *Bench) (*Plan, error) {
	p := &Plan{Columns: []Column{rateColumn, cpuColumn}}
	for _, n := range []int{16, 256, 1024} {
		t := b.packed()
		t.Stream, t.Partitions = fmt.Sprint("over-", n), n
		if err := fill(ctx, b.rdb, t); err != nil {
			return nil, err
		}
		p.Sides = append(p.Sides, Side{Name: fmt.Sprint(n, " partitions"), Task: t.runnel("raw")})
	}
	p.Claims = []Claim{
		ratio("rate", "256 partitions", "16 partitions", atLeast(0.9)),
		ratio("rate", "1024 partitions", "16 partitions", atLeast(0.75)),
	}
	return p, nil
}

const watchedAbout = "Draining as above, by a worker whose metrics are scraped every second, with latencies measured, and whose processor is shown on an open page of the dashboard, and by one without either."

func planWatched(ctx context.Context, b *Bench) (*Plan, error) {
	t := b.packed()
	if err := fill(ctx, b.rdb, t); err != nil {
		return nil, err
	}
	raw, records := t.runnel("raw"), t.runnel("records")
	watchedRaw, watchedRecords := raw, records
	watchedRaw.Watch, watchedRecords.Watch = true, true
	return &Plan{
		Sides: []Side{
			{Name: "Raw", Task: raw}, {Name: "Raw, watched", Task: watchedRaw},
			{Name: "Records", Task: records}, {Name: "Records, watched", Task: watchedRecords},
		},
		Claims: []Claim{
			ratio("rate", "Raw, watched", "Raw", atLeast(1)),
			ratio("rate", "Records, watched", "Records", atLeast(1)),
			ratio("cpu", "Raw, watched", "Raw", stats.Bar{}),
			ratio("cpu", "Records, watched", "Records", stats.Bar{}),
		},
		Columns: []Column{rateColumn, cpuColumn},
	}, nil
}

const aofAbout = "Draining and producing as above, on a server that writes an append-only file and syncs it every second."

// aofArgs have the file rewritten only between runs.
var aofArgs = []string{"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"}

func planAOF(ctx context.Context, b *Bench) (*Plan, error) {
	t := b.packed()
	t.Events = b.scale(200_000, 20_000)
	if err := fill(ctx, b.rdb, t); err != nil {
		return nil, err
	}
	best, notes, err := b.best(ctx, "by hand", plainSides(t, 64, 256))
	if err != nil {
		return nil, err
	}
	sent := b.produced(100, b.scale(100_000, 10_000))
	send, pipeline := sent.sideOf("Send of 100", "runnel-send", false), sent.sideOf("pipeline", "plain-send", false)
	send.Before, pipeline.Before = dropSent, dropSent
	raw := Side{Name: "Raw", Task: t.runnel("raw")}
	raw.Before, best.Before = shortenAOF, shortenAOF
	return &Plan{
		Sides: []Side{raw, best, send, pipeline},
		Claims: []Claim{
			ratio("rate", "Raw", "by hand", stats.Bar{}),
			ratio("rate", "Send of 100", "pipeline", stats.Bar{}),
		},
		Columns: []Column{rateColumn, cpuColumn},
		Notes:   notes,
	}, nil
}

func dropSent(ctx context.Context, b *Bench, t *Task) error {
	if err := b.rdb.Del(ctx, t.logs()...).Err(); err != nil {
		return err
	}
	return shortenAOF(ctx, b, t)
}

// longAOF is a file that is rewritten before the next run.
const longAOF = 512 << 20

// shortenAOF has the append-only file rewritten once it is long, and waits for it.
func shortenAOF(ctx context.Context, b *Bench, _ *Task) error {
	info := func(field string) string { return b.rdb.InfoMap(ctx, "persistence").Item("Persistence", field) }
	if n, _ := strconv.Atoi(info("aof_current_size")); n < longAOF {
		return nil
	}
	if err := b.rdb.BgRewriteAOF(ctx).Err(); err != nil {
		return err
	}
	for info("aof_rewrite_scheduled") == "1" || info("aof_rewrite_in_progress") == "1" { // in this order it happens
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// rest waits, but not beyond the end of ctx.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
