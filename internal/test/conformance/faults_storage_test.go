package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A shop is one worker under test and a producer that sends round by round.
type shop struct {
	t        *testing.T
	tr       *tracker
	worker   *parcelApp
	producer *parcelApp
	log      *history.Log
	keys     []string
	seq      int64
	pace     time.Duration // of the handler
}

// openShop starts a worker with short leases, for short outages, and processes a first round.
func openShop(t *testing.T, url string, pace time.Duration) *shop {
	s := &shop{t: t, pace: pace, tr: newTracker(history.Memory()), producer: newProducer(t, url, 4), keys: keysOf(4)}
	s.log = s.tr.history.As("producer")
	s.worker = s.start(url, "w1")
	ready(t, 30*time.Second, s.worker)
	s.mustRound()
	await(t, "the first round", 30*time.Second, func() bool { return s.tr.passed("check", 4, 1) })
	return s
}

func (s *shop) start(url, name string) *parcelApp {
	a := newParcelApp(s.t, url, name, func(o *runnel.Options) {
		o.Stream.Partitions = 4
		o.Processor.Lease = shortExpiry
	})
	s.tr.process(a, "check", nil, func(context.Context, *runnel.Event, parcel) error {
		<-time.After(s.pace)
		return nil
	})
	return a.run()
}

// round sends one parcel to each partition, records each outcome, and returns the error.
func (s *shop) round(pad string) error {
	s.t.Helper()
	s.seq++
	var out []runnel.Outgoing[parcel]
	for _, key := range s.keys {
		out = append(out, runnel.Outgoing[parcel]{Record: parcel{Key: key, Seq: s.seq, Pad: pad}})
	}
	_, err := s.producer.sendNoted(s.t.Context(), s.log, out)
	if err != nil && !errors.As(err, new(*runnel.SendError)) {
		s.t.Fatalf("not a SendError: %v", err)
	}
	return err
}

func (s *shop) mustRound() {
	s.t.Helper()
	if err := s.round(""); err != nil {
		s.t.Fatal(err)
	}
}

// refused checks that a round fails cleanly with this code.
func (s *shop) refused(code string) {
	s.t.Helper()
	err := s.round("")
	names(s.t, err, "stream parcels", "partition ", code)
	var se *runnel.SendError
	if errors.As(err, &se) {
		for _, f := range se.Failed {
			if f.Unknown {
				s.t.Errorf("record %d is of unknown outcome", f.Index)
			}
		}
	}
}

func (s *shop) fault(name string) {
	s.t.Helper()
	if err := s.tr.history.Fault("", name); err != nil {
		s.t.Fatal(err)
	}
}

// resumed waits until the last round is processed.
func (s *shop) resumed(since time.Time) {
	s.t.Helper()
	await(s.t, "the worker to go on", resumeLimit, func() bool { return s.tr.passed("check", 4, s.seq) })
	s.t.Logf("goes on %v after the end of the trouble; %d lines logged", time.Since(since).Round(time.Millisecond), s.worker.log.count())
	if s.worker.log.count() > linesOfOutage {
		s.t.Errorf("a flood of log lines\n%s", s.worker.log.String())
	}
}

func (s *shop) close(srv *redistest.Server) *history.Report {
	s.t.Helper()
	awaitRest(s.t, srv, 4, 1)
	s.worker.stop()
	return s.tr.judge(s.t, srv, 4, history.Options{Processors: []string{"check"}})
}

// The memory of the server is full for several expiries: sends fail, but stored events are
// processed and acked.
func TestMemoryFull(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	s := openShop(t, srv.URL(), 15*time.Millisecond)
	waiting := s.fill(rdb, 400)
	<-time.After(3 * shortExpiry)
	s.refused("OOM")
	await(t, "what is there to be processed", 30*time.Second, func() bool { return s.tr.completed() == waiting+4 })
	awaitRest(t, srv, 4, 1)
	if line := s.worker.log.line("partitions lost"); line != "" {
		t.Errorf("a partition was lost for want of memory: %s", line)
	}
	setMemory(t, rdb, "0")
	ended := time.Now()
	s.mustRound()
	s.resumed(ended)
	if report := s.close(srv); report.Repeats > 0 {
		t.Errorf("%d events were processed twice", report.Repeats)
	}
}

// fill sends n parcels, and then makes the server refuse more. It returns n.
func (s *shop) fill(rdb *redis.Client, n int) int {
	s.t.Helper()
	waiting := make([]parcel, n)
	for i := range waiting {
		s.seq++
		waiting[i] = parcel{Key: s.keys[i%4], Seq: s.seq}
	}
	s.producer.send(waiting...)
	setMemory(s.t, rdb, "1mb")
	s.refused("OOM")
	return n
}

func setMemory(t *testing.T, rdb *redis.Client, limit string) {
	t.Helper()
	if err := rdb.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
		t.Fatal(err)
	}
}

// The disk of the append-only file is full and the server refuses every write. After a restart with
// room, work continues.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	args := []string{"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"}
	srv := redistest.StartLimited(t, 1024, args...) // half a megabyte
	proxy := faultproxy.Start(t, srv.Addr())
	rdb := srv.Client(t)
	s := openShop(t, "redis://"+proxy.Addr(), 0)
	for range 19 {
		s.mustRound()
	}
	await(t, "the first rounds", 30*time.Second, func() bool { return s.tr.passed("check", 4, 20) })
	<-time.After(1500 * time.Millisecond) // until the server has synced them
	s.fault(history.Failover)             // acks of the last second are forgotten
	await(t, "a full disk", 30*time.Second, func() bool {
		err := rdb.Set(t.Context(), "filler", strings.Repeat("x", 64<<10), 0).Err()
		return err != nil && strings.Contains(err.Error(), "MISCONF")
	})
	s.refused("MISCONF")
	<-time.After(2 * shortExpiry)
	s.refused("MISCONF")
	if s.worker.log.line("MISCONF") == "" {
		t.Errorf("the log does not say what is the matter:\n%s", s.worker.log.String())
	}
	srv.Kill()
	roomy := redistest.Start(t, append(args, "--dir", srv.Dir())...)
	proxy.SetTarget(roomy.Addr())
	proxy.CutAll()
	ended := time.Now()
	s.mustRound()
	s.resumed(ended)
	s.close(roomy)
}

// The server becomes a replica for a while and refuses every write.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	s := openShop(t, srv.URL(), 0)
	s.fault(history.Failover)
	if err := rdb.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	s.refused("READONLY")
	<-time.After(2 * shortExpiry)
	if s.worker.log.line("READONLY") == "" {
		t.Errorf("the log does not say what is the matter:\n%s", s.worker.log.String())
	}
	fresh := runnel.New("fresh", &runnel.Options{RedisURL: srv.URL(), Logger: new(logbook).Logger()})
	defer fresh.Close()
	runnel.NewStream(fresh, "parcels", parcelKey, nil)
	names(t, fresh.Run(t.Context()), "app fresh", "stream parcels", "READONLY")
	if err := rdb.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	s.mustRound()
	s.resumed(ended)
	s.close(srv)
}

// The server loads its data for seconds after a restart. Running workers wait, and so do those that
// start meanwhile.
func TestLoadingServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no", "--key-load-delay", "250")
	rdb := srv.Client(t)
	s := openShop(t, srv.URL(), 0)
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for n := range 12000 {
			p.Set(t.Context(), fmt.Sprint("filler", n), n, 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.fault(history.Cut)
	srv.Kill()
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		srv.Restart()
	}()
	once := redis.NewClient(&redis.Options{Addr: srv.Addr(), MaxRetries: -1, DialerRetries: 1})
	defer once.Close()
	await(t, "the server to load", 30*time.Second, func() bool {
		err := once.Set(t.Context(), "is it loading?", 1, 0).Err()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	})
	late := s.start(srv.URL(), "w2")
	began := time.Now()
	s.refused("LOADING")
	if err := once.ConfigSet(t.Context(), "key-load-delay", "0").Err(); err != nil { // a worker that starts waits for 5 s
		t.Fatal(err)
	}
	receive(t, "the end of loading", restarted)
	t.Logf("it loaded for %v more", time.Since(began).Round(time.Millisecond))
	ended := time.Now()
	s.mustRound()
	s.resumed(ended)
	ready(t, 30*time.Second, s.worker, late)
	late.stop()
	s.close(srv)
}
