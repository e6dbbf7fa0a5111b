package conformance_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// alarms checks for false reports of forgotten data: two workers run "check", the second one
// through a proxy.
type alarms struct {
	t        *testing.T
	srv      *redistest.Server
	rdb      *redis.Client
	proxy    *faultproxy.Proxy
	tr       *tracker
	workers  []*parcelApp
	producer *parcelApp
	seq      int64
}

func newAlarms(t *testing.T) *alarms {
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	a := &alarms{t: t, srv: srv, rdb: srv.Client(t), proxy: faultproxy.Start(t, srv.Addr()), tr: newTracker(history.Memory())}
	a.worker("w1", srv.URL())
	a.worker("w2", "redis://"+a.proxy.Addr())
	a.producer = newProducer(t, srv.URL(), 2)
	ready(t, 60*time.Second, a.workers...)
	return a
}

func (a *alarms) worker(name, url string) {
	a.workers = append(a.workers, a.tr.worker(a.t, url, name, 2))
}

// round sends to all partitions and waits until the events are processed and the positions stored.
func (a *alarms) round() {
	a.t.Helper()
	a.seq++
	for _, key := range keysOf(2) {
		a.producer.send(parcel{Key: key, Seq: a.seq})
	}
	await(a.t, "a round to be processed", 60*time.Second, func() bool { return a.tr.passed("check", 2, a.seq) })
	await(a.t, "the positions to be stored", 60*time.Second, func() bool { return stored(a.t, a.rdb, 0) && stored(a.t, a.rdb, 1) })
}

func (a *alarms) do(args ...any) {
	a.t.Helper()
	if err := a.rdb.Do(a.t.Context(), args...).Err(); err != nil {
		a.t.Fatal(args, err)
	}
}

func (a *alarms) groups(do func(key, group string)) {
	for p := range 2 {
		for _, g := range a.rdb.XInfoGroups(a.t.Context(), partitionKey(p)).Val() {
			do(partitionKey(p), g.Name)
		}
	}
}

func (a *alarms) keys(pattern string) []string { return a.rdb.Keys(a.t.Context(), pattern).Val() }

func (a *alarms) runnel(args ...string) {
	a.t.Helper()
	app := runnel.New("post", &runnel.Options{RedisURL: a.srv.URL()})
	defer app.Close()
	var out bytes.Buffer
	if code := cli.Main(a.t.Context(), app, args, strings.NewReader(""), &out, &out); code != 0 {
		a.t.Fatalf("%v ends with %d:\n%s", args, code, out.String())
	}
}

func (a *alarms) stop() {
	for _, w := range a.workers {
		w.stop()
	}
}

func (a *alarms) start() {
	a.worker("w3", a.srv.URL())
	a.worker("w4", a.srv.URL())
	a.ready()
}

func (a *alarms) ready() { ready(a.t, 60*time.Second, a.workers[len(a.workers)-2:]...) }

// away disconnects the second worker while do runs.
func (a *alarms) away(do func()) {
	a.proxy.Pause()
	await(a.t, "its leases to end", 60*time.Second, func() bool { return len(a.keys("__beat:*")) == 1 })
	do()
	a.proxy.Resume()
}

// behind runs a command while the second worker, which owns all, is disconnected, and then starts a
// third one.
func (a *alarms) behind(args ...string) {
	a.workers[0].stop()
	ready(a.t, 60*time.Second, a.workers[1])
	a.proxy.Pause()
	await(a.t, "all leases to end", 60*time.Second, func() bool { return len(a.keys("__beat:*"))+len(a.keys("__lock:*")) == 0 })
	a.runnel(args...)
	a.proxy.Resume()
	a.worker("w3", a.srv.URL())
}

func (a *alarms) trim() {
	a.do("XTRIM", partitionKey(0), "MAXLEN", 0)
	a.do("XTRIM", partitionKey(1), "MAXLEN", 0)
}

func (a *alarms) setBack() {
	a.groups(func(key, group string) { a.do("XGROUP", "SETID", key, group, "0") })
}

func (a *alarms) quiet() {
	a.t.Helper()
	for _, p := range partitionsOf(a.t, a.srv) {
		if p.Lost != 0 || p.Forgotten != nil {
			a.t.Errorf("partition %d: lost %d, forgotten %v", p.Partition, p.Lost, p.Forgotten)
		}
	}
	for _, w := range a.workers {
		for line := range strings.Lines(w.log.String()) {
			if strings.Contains(line, mayBeGone) || strings.Contains(line, "loss of events unknown") {
				a.t.Errorf("worker %s says %s", w.name, line)
			}
		}
	}
}

// harmless are actions of operators and faults that lose no event.
var harmless = []struct {
	name string
	do   func(a *alarms)
}{
	{"workers are replaced one by one", func(a *alarms) {
		for _, w := range a.workers {
			a.worker(w.name+"new", a.srv.URL())
			a.round()
			w.stop()
		}
		a.ready()
	}},
	{"a worker is stopped past its lease", func(a *alarms) { a.away(a.round); a.round(); a.ready() }},
	{"a worker is stopped, and all is trimmed", func(a *alarms) {
		a.away(func() {
			a.round()
			a.trim()
		})
		a.ready()
	}},
	{"groups are destroyed", func(a *alarms) {
		a.groups(func(key, group string) { a.do("XGROUP", "DESTROY", key, group) })
		a.round()
	}},
	{"all is trimmed, and groups are destroyed", func(a *alarms) {
		a.trim()
		a.groups(func(key, group string) { a.do("XGROUP", "DESTROY", key, group) })
		a.round()
	}},
	{"positions are set back by hand, again and again", func(a *alarms) {
		for range 3 {
			a.setBack()
			a.round()
			a.ready()
		}
	}},
	{"all is trimmed, and positions are set back", func(a *alarms) {
		a.trim()
		a.setBack()
		a.do("DEL", a.keys("__lock:*")[0])
		a.ready()
	}},
	{"all is deleted by ID, and positions are set back", func(a *alarms) {
		for p := range 2 {
			for _, e := range a.rdb.XRange(a.t.Context(), partitionKey(p), "-", "+").Val() {
				a.do("XDEL", partitionKey(p), e.ID)
			}
		}
		a.setBack()
		a.do("DEL", a.keys("__lock:*")[0])
	}},
	{"consumers are deleted", func(a *alarms) {
		a.groups(func(key, group string) { a.do("XGROUP", "DELCONSUMER", key, group, "runnel") })
		a.round()
	}},
	{"locks are deleted", func(a *alarms) { a.rdb.Del(a.t.Context(), a.keys("__lock:*")...) }},
	{"heartbeats are deleted", func(a *alarms) { a.rdb.Del(a.t.Context(), a.keys("__beat:*")...) }},
	{"scripts are flushed", func(a *alarms) { a.do("SCRIPT", "FLUSH") }},
	{"connections are closed", func(a *alarms) { a.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }},
	{"Redis is restarted", func(a *alarms) {
		a.srv.Kill()
		a.srv.Restart()
		a.rdb = a.srv.Client(a.t)
	}},
	{"reset with no workers", func(a *alarms) {
		a.stop()
		a.runnel("processor", "reset", "parcels/check", "--to", "start", "--yes")
		a.start()
		a.round()
		a.stop()
		a.runnel("processor", "reset", "parcels/check", "--to", "end", "--yes")
		a.start()
	}},
	{"reset with all trimmed", func(a *alarms) {
		a.stop()
		a.do("XTRIM", partitionKey(0), "MAXLEN", 0)
		a.runnel("processor", "reset", "parcels/check", "--to", "start", "--yes")
		a.start()
	}},
	{"reset while a worker is away", func(a *alarms) {
		a.behind("processor", "reset", "parcels/check", "--to", "start", "--yes")
		a.ready()
	}},
	{"the processor is removed", func(a *alarms) {
		a.stop()
		a.runnel("processor", "rm", "parcels/check", "--yes")
		a.start()
	}},
	{"the processor is removed while a worker is away", func(a *alarms) {
		a.behind("processor", "rm", "parcels/check", "--yes")
		a.ready()
	}},
	{"the stream is removed while a worker is away", func(a *alarms) {
		a.behind("stream", "rm", "parcels", "--yes")
		a.producer = newProducer(a.t, a.srv.URL(), 2)
		a.ready()
	}},
}

func TestNothingIsToldAsForgotten(t *testing.T) {
	for _, tt := range harmless {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAlarms(t)
			for range 3 {
				a.round()
			}
			tt.do(a)
			a.round()
			a.ready()
			a.round()
			a.quiet()
		})
	}
}
