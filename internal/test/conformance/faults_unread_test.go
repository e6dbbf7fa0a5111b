package conformance_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A doorway is the network of one process. Closed, it refuses new connections, as when a process
// has no file descriptor left; existing ones stay.
type doorway struct {
	rdb    *redis.Client
	closed atomic.Bool

	mu    sync.Mutex
	reads map[string]bool // addresses, at this end, of its connections that have read partitions
}

// A doorwayConn notes when it reads partitions, by whatever command.
type doorwayConn struct {
	net.Conn
	d *doorway
}

func (c *doorwayConn) Write(b []byte) (int, error) {
	if text := string(b); strings.Contains(text, "\r\nxread") && strings.Contains(text, "post.parcels.") {
		c.d.mu.Lock()
		c.d.reads[c.LocalAddr().String()] = true
		c.d.mu.Unlock()
	}
	return c.Conn.Write(b)
}

var errNoDescriptor = errors.New("socket: too many open files")

func newDoorway(t testing.TB, url string) *doorway {
	ro, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	d := &doorway{reads: map[string]bool{}}
	ro.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if d.closed.Load() {
			return nil, errNoDescriptor
		}
		conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &doorwayConn{conn, d}, nil
	}
	d.rdb = redis.NewClient(ro)
	t.Cleanup(func() { d.rdb.Close() })
	return d
}

// endReads closes at most that many connections over which the process reads partitions, and
// returns their number.
func (d *doorway) endReads(t testing.TB, admin *redis.Client, most int) (ended int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for line := range strings.Lines(admin.ClientList(t.Context()).Val()) {
		fields := map[string]string{}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if d.reads[fields["addr"]] && ended < most {
			ended += int(admin.ClientKillByFilter(t.Context(), "ID", fields["id"]).Val())
		}
	}
	return ended
}

// throughDoor makes a worker that connects through a doorway.
func throughDoor(t testing.TB, srv *redistest.Server, tr *tracker, name string, adjust func(*runnel.Options)) (*parcelApp, *doorway) {
	d := newDoorway(t, srv.URL())
	a := newParcelApp(t, srv.URL(), name, func(o *runnel.Options) {
		o.Redis, o.Stream.Partitions, o.Processor.Lease = d.rdb, 8, shortExpiry
		if adjust != nil {
			adjust(o)
		}
	})
	tr.process(a, "check", nil, nil)
	return a, d
}

func (a *parcelApp) members(t testing.TB) (workers string) {
	t.Helper()
	client, err := appview.Of(a.app).Client()
	if err != nil {
		t.Fatal(err)
	}
	_, members, err := inspect.Members(t.Context(), client, "parcels", "check")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		workers += m.Worker + " "
	}
	return strings.TrimSpace(workers)
}

// A worker whose reads fail for longer than its lease, though it can renew its locks, gives its
// partitions to others that can read, and rejoins when it can.
func TestAWorkerThatCannotReadGivesItsPartitionsUp(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	tr, admin := newTracker(history.Memory()), srv.Client(t)
	blind, door := throughDoor(t, srv, tr, "blind", nil)
	other, _ := throughDoor(t, srv, tr, "other", nil)
	producer := newProducer(t, srv.URL(), 8)
	blind.run()
	other.run()
	ready(t, 30*time.Second, blind, other)
	await(t, "both to be members", 30*time.Second, func() bool { return other.members(t) == "blind other" })
	ready(t, 30*time.Second, blind, other)
	f := startFlow(t, producer, tr.history, 8, 20*time.Millisecond)
	await(t, "the flow", 30*time.Second, func() bool { return tr.passed("check", 8, 5) })

	door.closed.Store(true)
	await(t, "its reads to end", 30*time.Second, func() bool { return door.endReads(t, admin, 10) > 0 })
	await(t, "Ready to tell", 30*time.Second, func() bool {
		err := blind.app.Ready()
		return err != nil && strings.Contains(err.Error(), "not reading") && strings.Contains(err.Error(), errNoDescriptor.Error())
	})
	await(t, "the other one to be alone", 30*time.Second, func() bool { return other.members(t) == "other" })
	round := f.round.Load() + 1
	await(t, "all partitions to go on", 60*time.Second, func() bool { return tr.passed("check", 8, round) })
	ready(t, 30*time.Second, other)
	// It does not rejoin to take partitions that it cannot read. On a busy machine it may have lost its leases first.
	await(t, "a line that says why it stands aside", 30*time.Second, func() bool {
		return blind.log.line("rejoining", "not reading") != "" || blind.log.line("connections for reads", errNoDescriptor.Error()) != ""
	})
	round = f.round.Load() + 20
	await(t, "the flow to go on", 60*time.Second, func() bool { return tr.passed("check", 8, round) })
	if got := other.members(t); strings.Contains(got, "blind") {
		t.Errorf("members are %q while one of them cannot read", got)
	}

	door.closed.Store(false)
	await(t, "both to be members again", 60*time.Second, func() bool { return other.members(t) == "blind other" })
	ready(t, 30*time.Second, blind, other)
	f.stop()
	last := f.round.Load()
	await(t, "the rest", 60*time.Second, func() bool { return tr.passed("check", 8, last) })
	for _, a := range []*parcelApp{blind, other} {
		a.stop()
	}
	tr.judge(t, srv, 8, history.Options{Processors: []string{"check"}})
}

// The only worker continues with the connections that can read. Without any, it waits until it can
// read.
func TestTheOnlyWorkerReadsAsSoonAsItCan(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	tr, admin := newTracker(history.Memory()), srv.Client(t)
	a, door := throughDoor(t, srv, tr, "only", func(o *runnel.Options) { o.Processor.ReadConns = 2 })
	producer := newProducer(t, srv.URL(), 8)
	bystander := newParcelApp(t, srv.URL(), "bystander", nil) // its connections do not go through the door
	a.run()
	ready(t, 30*time.Second, a)
	f := startFlow(t, producer, tr.history, 8, 20*time.Millisecond)
	await(t, "the flow", 30*time.Second, func() bool { return tr.passed("check", 8, 5) })

	door.closed.Store(true)
	await(t, "its reads to end", 30*time.Second, func() bool { return door.endReads(t, admin, 10) > 0 })
	await(t, "it to stand aside", 60*time.Second, func() bool { return bystander.members(t) == "" })
	door.closed.Store(false)
	round := f.round.Load() + 1
	await(t, "all partitions to go on", 60*time.Second, func() bool { return tr.passed("check", 8, round) })
	ready(t, 30*time.Second, a)
	f.stop()
	last := f.round.Load()
	await(t, "the rest", 60*time.Second, func() bool { return tr.passed("check", 8, last) })
	a.stop()
	tr.judge(t, srv, 8, history.Options{Processors: []string{"check"}})
}

// A worker reads over one connection for 16 partitions while little comes, and over more with a backlog. Where it gets
// none, it reads over the one.
func TestABacklogIsReadOverTheConnectionsThatThereAre(t *testing.T) {
	t.Parallel()
	const each = 2000
	for name, reads := range map[string]runnel.Reads{"by group": runnel.ByGroup, "by position": runnel.ByPosition} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			tr := newTracker(history.Memory())
			a, door := throughDoor(t, srv, tr, "w1", func(o *runnel.Options) {
				o.Processor.Reads, o.Processor.Lease = reads, time.Minute // without the lease it could not rejoin
			})
			producer := newProducer(t, srv.URL(), 8)
			a.run()
			ready(t, 30*time.Second, a)
			door.closed.Store(true)
			f := &flow{app: producer, log: tr.history.As("producer"), keys: keysOf(8)}
			for seq := range int64(each) {
				f.send(t.Context(), seq+1)
			}
			await(t, "the backlog", 60*time.Second, func() bool { return tr.passed("check", 8, each) })
			if err := a.app.Ready(); err != nil {
				t.Error(err)
			}
			if a.log.line("redis error, retrying", "op=reads", errNoDescriptor.Error()) == "" {
				t.Error("it should have tried another connection")
			}
			if line := a.log.line("rejoining"); line != "" {
				t.Error(line)
			}
			a.stop()
			tr.judge(t, srv, 8, history.Options{Processors: []string{"check"}})
		})
	}
}

// Partitions that are not read on purpose stay owned: their buffer is full while the function takes
// longer than the lease. So do all partitions while connections break and recover.
func TestWhatIsNotReadOnPurposeIsKept(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	tr, admin := newTracker(history.Memory()), srv.Client(t)
	free := make(chan struct{})
	a, door := throughDoor(t, srv, tr, "w1", func(o *runnel.Options) { o.Processor.Prefetch = 1 })
	a.parcels.Process("slow", runnel.Each(func(context.Context, *runnel.Event, parcel) error {
		<-free
		return nil
	}), nil)
	producer := newProducer(t, srv.URL(), 8)
	a.run()
	ready(t, 30*time.Second, a)
	for seq := range int64(10) {
		for _, key := range keysOf(8) {
			producer.send(parcel{Key: key, Seq: seq + 1})
		}
	}
	await(t, "the quick one", 30*time.Second, func() bool { return tr.passed("check", 8, 10) })
	rejoins := func() int64 {
		return appview.Of(a.app).Stats().Processors[0].Counters.Rejoins.Load() + appview.Of(a.app).Stats().Processors[1].Counters.Rejoins.Load()
	}
	before := rejoins()
	for until := time.Now().Add(2 * shortExpiry); time.Now().Before(until); {
		door.endReads(t, admin, 10) // again and again, and each time they come back
		time.Sleep(50 * time.Millisecond)
	}
	if n := rejoins() - before; n > 0 {
		t.Errorf("%d rejoins, though nothing was in the way of reads", n)
	}
	close(free)
	ready(t, 30*time.Second, a)
}
