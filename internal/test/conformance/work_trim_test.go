package conformance_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

var postKeys = keys.Keys{App: "post", Layout: keys.Standalone}

const (
	trimPartitions = 2
	trimSize       = trimEvents / trimPartitions // so that they are full while nothing is trimmed
	trimEvents     = 10_000
	trimNode       = 100 // entries that the server removes at once
)

// newTrimmer is a program with the processors early and late. The handler of late is slow enough to
// be killed in between.
func newTrimmer(t *testing.T, url, name string, h *history.Log) *parcelApp {
	a := newParcelApp(t, url, name, func(o *runnel.Options) {
		o.Stream.Partitions, o.Stream.MaxLen = trimPartitions, trimSize
		o.Processor.Lease = shortExpiry
	})
	tr := newTracker(h)
	tr.process(a, "early", nil, nil)
	tr.process(a, "late", nil, func(context.Context, *runnel.Event, parcel) error {
		if name == "victim" {
			<-time.After(200 * time.Microsecond)
		}
		return nil
	})
	return a
}

// While one of two processors is not started, nothing is trimmed, though the partitions are full.
// After it runs, is killed, and runs again, they are trimmed to between 3/4 and 7/8 of their size,
// and no event is missed.
func TestTrimmingWaitsForEveryProcessor(t *testing.T) {
	if name := os.Getenv(childVariable); name != "" {
		runLate(t, name)
		return
	}
	t.Parallel()
	srv, dir := redistest.Start(t, "--stream-node-max-entries", "100"), t.TempDir()
	rdb := srv.Client(t)
	paths := []string{filepath.Join(dir, "driver")}
	h, err := history.Open(paths[0], "driver")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	early := newTrimmer(t, srv.URL(), "early", h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- early.app.Run(ctx, "early") }()
	ready(t, 30*time.Second, early)
	sendAll(t, srv, h)
	awaitRest(t, srv, trimPartitions, 1)
	processed := time.Now()
	await(t, "two rounds of trimming", 30*time.Second, func() bool { return time.Since(processed) > 2500*time.Millisecond })
	if n := lengths(t, rdb); n != trimEvents {
		t.Errorf("%d of %d events are left though a registered processor has seen none", n, trimEvents)
	}

	victim := startChild(t, srv, dir, "victim")
	await(t, "the victim to do a part", 60*time.Second, func() bool { return lengths(t, rdb) < trimEvents })
	if err := h.Fault("victim", history.Kill); err != nil {
		t.Fatal(err)
	}
	victim.cmd.Process.Kill()
	receive(t, "the victim to die", victim.exited)
	left := lengths(t, rdb)
	late := newTrimmer(t, srv.URL(), "late", h)
	go func() { ended <- late.app.Run(ctx, "late") }()
	awaitRest(t, srv, trimPartitions, 2)
	rested := time.Now()
	const least = trimPartitions * (trimSize * 3 / 4)
	const most = trimPartitions * (trimSize*7/8 + 2*trimNode)
	await(t, "the rest to be trimmed", 50*time.Second, func() bool { return lengths(t, rdb) <= most })
	t.Logf("%d events were left when the late processor was killed; trimmed to %d of %d within %v of the last ack",
		left, lengths(t, rdb), trimEvents, time.Since(rested).Round(time.Millisecond))
	if n := lengths(t, rdb); n < least {
		t.Errorf("trimmed to %d, below 3/4 of the size", n)
	}
	cancel()
	for range 2 {
		if err := receive(t, "the workers to stop", ended); err != nil {
			t.Error(err)
		}
	}
	judgeFiles(t, append(paths, victim.path)...)
}

// judgeFiles checks the histories of both processors.
func judgeFiles(t *testing.T, paths ...string) {
	t.Helper()
	records, err := history.Read(paths...)
	if err != nil {
		t.Fatal(err)
	}
	report := history.Check(records, history.Options{Processors: []string{"early", "late"}})
	t.Log(report)
	if !report.OK {
		t.Error("the history breaks a promise")
	}
}

func runLate(t *testing.T, name string) {
	h, err := history.Open(os.Getenv(childHistory), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := newTrimmer(t, os.Getenv(childURL), name, h).app.Run(t.Context(), "late"); err != nil {
		t.Error(err)
	}
}

// sendAll sends in batches and records what was accepted.
func sendAll(t *testing.T, srv *redistest.Server, h *history.Log) {
	t.Helper()
	producer := newProducer(t, srv.URL(), trimPartitions)
	keys, log := keysOf(trimPartitions), h.As("producer")
	for seq := int64(0); seq < trimEvents; {
		var out []runnel.Outgoing[parcel]
		for range 500 {
			out = append(out, runnel.Outgoing[parcel]{Record: parcel{Key: keys[seq%trimPartitions], Seq: seq}})
			seq++
		}
		sent, err := producer.parcels.SendEvents(t.Context(), out...)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range sent {
			if err := log.Sent("parcels", s.Partition, s.ID, out[i].Record.Key, out[i].Record.Seq); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lengths returns the number of events in all partitions.
func lengths(t *testing.T, rdb *redis.Client) int {
	n := int64(0)
	for p := range trimPartitions {
		n += rdb.XLen(t.Context(), partitionKey(p)).Val()
	}
	return int(n)
}
