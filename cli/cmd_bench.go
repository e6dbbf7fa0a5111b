package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

const (
	flagDuration = "duration"
	flagSize     = "size"
	flagBatch    = "batch"
	flagSenders  = "senders"

	// benchBytes bounds what a bench may write, with benchOverhead for each event.
	benchBytes    = 64 << 20
	benchOverhead = 100
	// benchFull is the share of maxmemory that may be used with a bench.
	benchFull = 0.8
	// benchLimit is the share of a core from which Redis is the limit.
	benchLimit = 0.85
)

func benchCommand(p *program) *cobra.Command {
	return p.command("bench", "load this Redis for some seconds, and measure how fast it sends and drains events", flagList{
		newFlag(flagDuration, 5*time.Second, "how long to measure, as a `DURATION` of 500ms to 1m"),
		newFlag(flagPartitions, 16, "partition `COUNT`, 1 to 1024"),
		newFlag(flagSize, 100, "`BYTES` of a record, 1 to 1048576"),
		newFlag(flagBatch, 100, "records that are sent together, `COUNT` of 1 to 10000"),
		newFlag(flagSenders, 4, "goroutines that send, `COUNT` of 1 to 256"),
		yesFlag(),
	}, runBench,
		"PROG bench",
		"PROG bench --yes --duration 10s --size 1000",
		"PROG bench --yes --output json")
}

// A benched is what `bench` prints.
type benched struct {
	App        string    `json:"app"` // the name that it ran under
	Redis      string    `json:"redis"`
	Version    string    `json:"version"` // of the server
	Partitions int       `json:"partitions"`
	Size       int       `json:"size"`
	Batch      int       `json:"batch"`
	Senders    int       `json:"senders"`
	Measures   []measure `json:"measures"`
	Limit      string    `json:"limit"` // what limited sending in batches
}

// A measure is the result of one stage of a bench.
type measure struct {
	Name     string   `json:"name"`
	Events   int64    `json:"events"`
	Took     float64  `json:"took"`      // ms
	Rate     float64  `json:"rate"`      // events per second
	P50      *float64 `json:"p50"`       // ms; nil where it makes no sense
	P99      *float64 `json:"p99"`       // ms
	RedisCPU *float64 `json:"redis_cpu"` // share of a core; nil: unknown
}

func runBench(ctx context.Context, s *session, c *call) error {
	out := benched{Partitions: c.Int(flagPartitions), Size: c.Int(flagSize), Batch: c.Int(flagBatch), Senders: c.Int(flagSenders)}
	duration := c.Duration(flagDuration)
	if err := checkBench(c, s.stdin, out, duration); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	server, err := roomForBench(ctx, s.client)
	if err != nil {
		return err
	}
	out.App, out.Redis, out.Version = benchName(s.app.Name()), s.client.Addr(), server.Version
	if !c.Bool(flagDev) { // whose server is its own
		if err := s.confirm(c, "Load redis %s as hard as possible for about %s, with up to %d MiB, beside whatever it does?", out.Redis, duration, benchBytes>>20); err != nil {
			return err
		}
	}
	b, err := newBench(s, out)
	if err != nil {
		return err
	}
	out.Measures, err = b.run(ctx, duration)
	if left := b.remove(ctx); left != nil {
		left = fmt.Errorf("what app %s wrote is still there, see %s: %w", out.App, "stream rm", left)
		if err == nil {
			return left
		}
		printf(s.stderr, "%s: %s\n", s.name, oneLine(left))
	}
	if err != nil {
		return err
	}
	out.Limit = out.limit()
	return s.out.table(out, out.write)
}

func checkBench(c *call, stdin io.Reader, b benched, duration time.Duration) error {
	if duration < 500*time.Millisecond || duration > time.Minute {
		return usagef(c, "--%s %v is not between 500ms and 1m", flagDuration, duration)
	}
	for _, f := range []struct {
		name     string
		n, limit int
	}{{flagPartitions, b.Partitions, 1024}, {flagSize, b.Size, 1 << 20}, {flagBatch, b.Batch, 10_000}, {flagSenders, b.Senders, 256}} {
		if f.n < 1 || f.n > f.limit {
			return usagef(c, "--%s %d is not between 1 and %d", f.name, f.n, f.limit)
		}
	}
	if all := b.Size * b.Batch * b.Senders; all > benchBytes/4 {
		return usagef(c, "--%s × --%s × --%s is %d MiB at once, more than %d", flagSize, flagBatch, flagSenders, all>>20, benchBytes/4>>20)
	}
	if !c.Bool(flagYes) && !c.Bool(flagDev) && !isTerminal(stdin) {
		return usagef(c, "it loads the server, beside whatever else that does: say --%s", flagYes)
	}
	return nil
}

// roomForBench refuses a server without room for a bench.
func roomForBench(ctx context.Context, c *store.Client) (inspect.ServerState, error) {
	server, err := inspect.Server(ctx, c)
	switch {
	case err != nil:
		return server, err
	case server.Master != "":
		return server, fmt.Errorf("redis at %s is a replica, which takes no events: say --%s of its master, %s", c.Addr(), flagRedisURL, server.Master)
	case server.MaxMemory > 0 && float64(server.Memory+benchBytes) > benchFull*float64(server.MaxMemory):
		return server, fmt.Errorf("redis at %s uses %d MiB of its maxmemory of %d MiB, and a bench writes up to %d MiB: raise maxmemory, or run it on a server of its own",
			c.Addr(), server.Memory>>20, server.MaxMemory>>20, benchBytes>>20)
	}
	return server, nil
}

// benchName returns the name of an app that no other program uses.
func benchName(app string) string {
	const most = 64
	suffix := "-bench-" + strings.ToLower(rand.Text()[:8])
	return app[:min(len(app), most-len(suffix))] + suffix
}

// limit describes what kept sending in batches from being faster.
func (b benched) limit() string {
	for _, m := range b.Measures {
		switch {
		case m.Name != stageBatches:
		case m.RedisCPU == nil:
			return "unknown: the server does not report its use of CPU"
		case *m.RedisCPU >= benchLimit:
			return fmt.Sprintf("Redis: it used %.0f %% of a core", 100**m.RedisCPU)
		default:
			return fmt.Sprintf("not Redis, which used %.0f %% of a core, but this program, its machine, or the way between them", 100**m.RedisCPU)
		}
	}
	return "unknown"
}

func (b benched) write(t table) {
	t.linef("redis %s (%s): %d partitions, %d bytes a record, %d senders", b.Redis, words.Dash(b.Version), b.Partitions, b.Size, b.Senders)
	fmt.Fprintln(t, "MEASURE\tEVENTS\tPER SECOND\tP50\tP99\tREDIS CPU")
	for _, m := range b.Measures {
		name, cpu := m.Name, "-"
		if name == stageBatches {
			name = fmt.Sprintf("%s of %d", name, b.Batch)
		}
		if m.RedisCPU != nil {
			cpu = fmt.Sprintf("%.0f %%", 100**m.RedisCPU)
		}
		t.row(name, m.Events, fmt.Sprintf("%.0f", m.Rate), microseconds(m.P50), microseconds(m.P99), cpu)
	}
	t.linef("what limits sending in batches: %s", b.Limit)
}

func microseconds(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return (time.Duration(*ms*1000) * time.Microsecond).String()
}

// stages of a bench, in their order.
const (
	stagePing    = "ping"
	stageSingle  = "send one by one"
	stageLatency = "send to handler"
	stageBatches = "send in batches"
	stageDrain   = "drain"
)
