//go:build !race

// The race detector multiplies the memory of a program: make security runs these without it.

package security

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const (
	boundEnv   = "RUNNEL_SECURITY_BOUND"   // URL of the Redis of a worker whose memory is bounded
	backlogEnv = "RUNNEL_SECURITY_BACKLOG" // URL of the Redis of a worker with a backlog of large events
	bound      = 512 << 20                 // deploy/kubernetes.yaml's
)

func init() {
	if url := os.Getenv(boundEnv); url != "" {
		boundedWorker(url)
	}
	if url := os.Getenv(backlogEnv); url != "" {
		backlogWorker(url)
	}
}

// boundedWorker is a worker with a limit on its memory.
func boundedWorker(url string) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		panic(err)
	}
	// Under the race detector the program has mapped more than that before main: the limit is raised.
	limit := uint64(bound)
	if used := dataOf("self"); used > bound/2 {
		limit = used + 8*bound
	}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		panic(err)
	}
	app, _ := declareBounded(&runnel.Options{}, redis.NewClient(opts))
	cli.Run(app)
	os.Exit(0)
}

// dataOf returns how many bytes of a process RLIMIT_DATA counts.
func dataOf(pid string) uint64 { return statusOf(pid, "VmData:") }

// statusOf returns a number of bytes from a process's status, 0 if there is none.
func statusOf(pid, field string) uint64 {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	_, after, _ := strings.Cut(string(status), field)
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseUint(fields[0], 10, 64)
	return kb << 10
}

// declareBounded returns an app whose functions count processed events. They hold large ones for a
// moment.
func declareBounded(o *runnel.Options, journal *redis.Client) (*runnel.App, map[string]*runnel.Stream[any]) {
	o.LeaderPoll = 200 * time.Millisecond
	o.Processor = runnel.ProcessorOptions{Lease: 5 * time.Second, Retry: &runnel.Retry{Max: 1}}
	app := runnel.New("shop", o)
	all := map[string]*runnel.Stream[any]{}
	for _, c := range []struct {
		name  string
		codec codec.Codec
	}{{"json", codec.JSON}, {"mp", codec.MsgPack}, {"zstd", codec.Zstd(codec.JSON)}, {"gzip", codec.Gzip(codec.MsgPack)}} {
		s := runnel.NewStream(app, c.name, func(any) string { return "" }, &runnel.StreamOptions{Codec: c.codec})
		s.Process("each", runnel.Each(func(ctx context.Context, e *runnel.Event, record any) error {
			if text, ok := record.(string); ok && len(text) > 1<<20 {
				<-time.After(50 * time.Millisecond)
			}
			return journal.Incr(ctx, "did").Err()
		}), nil)
		s.Process("many", runnel.EachBatch(100, time.Second, func(ctx context.Context, e []*runnel.Event, records []any) error {
			return journal.IncrBy(ctx, "did", int64(len(records))).Err()
		}), nil)
		all[c.name] = s
	}
	return app, all
}

func packed(t *testing.T, w interface {
	Write([]byte) (int, error)
	Close() error
}, text string, n int) {
	t.Helper()
	piece := strings.Repeat(text, 1<<20/len(text))
	for left := n; left > 0; left -= len(piece) {
		if _, err := w.Write([]byte(piece[:min(left, len(piece))])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// entriesOfAll returns entries that decode to large values, some of them small themselves: for each
// stream the decodable ones, and the others.
func entriesOfAll(t *testing.T) (good, bad map[string][]string) {
	zst := func(before, text, behind string, n int) string {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, before)
		packed(t, w, text, n-len(behind))
		if behind == "" {
			return out.String()
		}
		var end bytes.Buffer
		if err := func() error { w.Reset(&end); fmt.Fprint(w, behind); return w.Close() }(); err != nil {
			t.Fatal(err)
		}
		return out.String() + end.String()
	}
	gz := func(before, text string, n int) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		fmt.Fprint(w, before)
		packed(t, w, text, n)
		return out.String()
	}
	const mib = 1 << 20
	good = map[string][]string{
		"zstd": {zst(`"`, "a", `"`, 60*mib), zst(`"`, "b", `"`, 20*mib), zst("", " ", "0", 63*mib), zst(`"`, "c", `"`, 3*mib)},
		"gzip": {gz("\xdb\x03\xc0\x00\x00", "x", 60*mib), gz("\xc6\x00\x30\x00\x00", "x", 3*mib)},
		"json": {`"` + strings.Repeat(`\n`, mib/4) + `"`},
		"mp":   {"\xdd\x00\x01\x00\x00" + strings.Repeat("\x80", 1<<16)},
	}
	bad = map[string][]string{
		"zstd": {zst(`"`, "a", `"`, 500*mib), zst("[", "{},", "{}]", 63*mib), zst(`"`, "\xff", `"`, 60*mib)},
		"gzip": {gz("\xdb\x40\x00\x00\x00", "x", 300*mib), gz("\xdd\x02\x00\x00\x00", "\x80", 1<<25)},
		"json": {"[" + strings.Repeat("{},", 5_000_000) + "{}]"},
		"mp":   {"\xdd\x01\x00\x00\x00" + strings.Repeat("\x80", 1<<24)},
	}
	return good, bad
}

// Small entries may decode to large values. The system bounds the worker's memory, as for a
// container.
func TestSmallEntriesDoNotEndAWorker(t *testing.T) {
	good, bad := entriesOfAll(t)
	for _, name := range []string{"zstd", "gzip", "json", "mp"} {
		t.Run(name, func(t *testing.T) { survives(t, name, good[name], bad[name]) })
	}
}

// survives sends entries to all partitions of a stream, and waits until the worker is done with
// them.
func survives(t *testing.T, stream string, good, bad []string) {
	server, journal := redistest.Start(t), redistest.Start(t)
	rdb, ctx := server.Client(t), t.Context()
	app, all := declareBounded(&runnel.Options{RedisURL: server.URL()}, nil)
	defer app.Close()
	k := keys.Keys{App: "shop", Layout: keys.Standalone}
	if err := all[stream].Send(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	want, dead := 2, 0
	add := func(partition int, data string) {
		if err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: k.Partition(stream, partition), Values: []any{"data", data}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for partition := range 16 {
		for i := range 2 {
			add(partition, good[(partition+i)%len(good)])
			want += 2
		}
		// Entries that are large themselves take memory when they are read.
		if data := bad[partition%len(bad)]; partition < 1 || len(data) < 4<<20 {
			add(partition, data)
			dead += 2
		}
	}
	worker, log := startBounded(t, server.URL(), boundEnv+"="+journal.URL())
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	t.Cleanup(func() { _ = worker.Process.Kill() })
	most := uint64(0)
	for deadline := time.Now().Add(5 * time.Minute); ; {
		most = max(most, dataOf(strconv.Itoa(worker.Process.Pid)))
		did, _ := journal.Client(t).Get(ctx, "did").Int()
		letters := 0
		for _, processor := range []string{"each", "many"} {
			for partition := range 16 {
				letters += int(rdb.XLen(ctx, k.Dead(stream, processor, partition)).Val())
			}
		}
		if did >= want && letters == dead { // a busy machine may lose a lease, and repeat some
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the worker ended with %d of %d events processed and %d of %d dead letters: %v: %s", did, want, letters, dead, err, log)
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events processed, %d of %d dead letters: %s", did, want, letters, dead, log)
		}
	}
	t.Logf("%d events and %d dead letters with %d MB at most", want, dead, most>>20)
}

// The backlog of events of 5 MB, and its settings.
const (
	largeEvents     = 60
	largeEvent      = 5_000_000
	largePartitions = 4
	largePrefetch   = 1 << 20
	largeRecord     = 16 << 20
	// largeSaid is the worker's memory by docs/security.md: for records being decoded, prefetch,
	// replies (the first ones of unknown size), and the rest.
	largeSaid = 3*largeRecord + largePartitions*largeEvent + largePartitions*largeEvent + 50<<20
)

// declareBacklog returns an app whose function counts processed events.
func declareBacklog(o *runnel.Options, journal *redis.Client) (*runnel.App, *runnel.Stream[[]byte]) {
	o.Processor = runnel.ProcessorOptions{PrefetchBytes: largePrefetch}
	app := runnel.New("shop", o)
	s := runnel.NewStream(app, "parcels", func(b []byte) string { return strconv.Itoa(int(b[0])) }, &runnel.StreamOptions{
		Partitions: largePartitions, MaxRecord: largeRecord,
		Partitioner: &runnel.Partitioner{Name: "own", Func: func(key string, n int) int { return int(key[0]) % n }},
	})
	s.Process("count", runnel.Each(func(ctx context.Context, _ *runnel.Event, _ []byte) error {
		return journal.Incr(ctx, "did").Err()
	}), nil)
	return app, s
}

func backlogWorker(url string) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		panic(err)
	}
	app, _ := declareBacklog(&runnel.Options{}, redis.NewClient(opts))
	cli.Run(app)
	os.Exit(0)
}

// The memory of a worker that catches up does not grow with the backlog.
func TestABacklogOfLargeEventsTakesWhatIsSaid(t *testing.T) {
	server, journal := redistest.Start(t), redistest.Start(t)
	app, s := declareBacklog(&runnel.Options{RedisURL: server.URL()}, nil)
	defer app.Close()
	for i := range largeEvents {
		record := make([]byte, largeEvent)
		record[0] = byte(i)
		// On a busy machine a reply may come too late: sent again, the record is there once.
		out := runnel.Outgoing[[]byte]{Record: record, DedupID: strconv.Itoa(i)}
		for deadline := time.Now().Add(time.Minute); ; {
			_, err := s.SendEvents(t.Context(), out)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	worker, log := startBounded(t, server.URL(), backlogEnv+"="+journal.URL(), fmt.Sprint("GOMEMLIMIT=", largeSaid))
	t.Cleanup(func() { _ = worker.Process.Kill(); _ = worker.Wait() })
	rdb, did := journal.Client(t), 0
	for deadline := time.Now().Add(5 * time.Minute); did < largeEvents; time.Sleep(10 * time.Millisecond) {
		did, _ = rdb.Get(t.Context(), "did").Int()
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events processed: %s", did, largeEvents, log)
		}
	}
	most := statusOf(strconv.Itoa(worker.Process.Pid), "VmHWM:")
	t.Logf("%d MB at most of %d documented, for a backlog of %d", most>>20, largeSaid>>20, largeEvents*largeEvent>>20)
	if most == 0 || most > largeSaid {
		t.Errorf("the worker took %d MB, want at most %d", most>>20, largeSaid>>20)
	}
}

func startBounded(t *testing.T, url string, env ...string) (*exec.Cmd, *redistest.Log) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, log := exec.Command(self, "worker"), &redistest.Log{}
	cmd.Env = append(append(os.Environ(), "RUNNEL_REDIS_URL="+url, "GOGC=100"), env...) // whatever the environment says
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, log
}
