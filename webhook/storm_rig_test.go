package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/webhook"
)

const (
	stormLease      = time.Second
	stormPartitions = 4
)

var local = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A storm is a bus on a server, with workers behind proxies that are hurt, and receivers that answer as they like.
type storm struct {
	*testing.T
	url, addr string // addr: of one server, "" for a cluster
	userinfo  string // of workers, with @
	layout    runnel.KeyLayout
	retry     runnel.Retry
	adjust    []func(*webhook.Options)
	bus       *webhook.Bus // outside of the workers, on a connection that nothing hurts
	ctx       context.Context
	judge     umpire
	log       redistest.Log
	receivers *httptest.Server

	published map[string]int64 // by topic
	more      func() bool      // whether a storm that has had its steps goes on; nil: it does not

	workers []*blown
	running sync.WaitGroup
	started int

	calm   atomic.Bool               // receivers answer with success, as answer says otherwise
	answer func(r *http.Request) int // of a calm storm: the status
	randMu sync.Mutex
	rand   *rand.Rand
}

// A blown is a worker of a storm.
type blown struct {
	proxy *faultproxy.Proxy // nil in a cluster
	stop  context.CancelFunc
	gone  atomic.Bool // cut off from the server
}

func newStorm(t *testing.T, url, addr string, layout runnel.KeyLayout, seed uint64, adjust ...func(*webhook.Options)) *storm {
	t.Helper()
	s := &storm{T: t, adjust: adjust, url: url, addr: addr, layout: layout, ctx: t.Context(), rand: rand.New(rand.NewPCG(seed, 0))}
	s.retry = runnel.Retry{Max: []int{4, 1_000_000}[s.pick(2)], MinBackoff: 30 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
	s.receivers = httptest.NewUnstartedServer(s)
	s.receivers.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.receivers.Start()
	t.Cleanup(func() {
		s.receivers.CloseClientConnections()
		s.receivers.Close()
	})
	app := s.app(url, "outside")
	s.bus = s.declare(app)
	t.Cleanup(func() { app.Close() })
	return s
}

func (s *storm) pick(n int) int {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	return s.rand.IntN(n)
}

// chance reports whether something of so many per cent happens.
func (s *storm) chance(percent int) bool { return s.pick(100) < percent }

func (s *storm) app(url, name string) *runnel.App {
	return runnel.New("shop", &runnel.Options{RedisURL: url, WorkerName: name, KeyLayout: s.layout, Logger: s.log.Logger()})
}

func (s *storm) declare(app *runnel.App) *webhook.Bus {
	opts := &webhook.Options{
		Partitions: stormPartitions, Lease: stormLease, Retry: &s.retry, Keep: 50, Timeout: 2 * time.Second,
		AllowHTTP: true, AllowAddresses: local,
	}
	for _, change := range s.adjust {
		change(opts)
	}
	return webhook.New(app, "bus", opts)
}

// start starts a worker.
func (s *storm) start() {
	w := &blown{}
	if s.addr != "" {
		w.proxy = faultproxy.Start(s, s.addr)
	}
	s.workers = append(s.workers, w)
	s.run(w)
}

// run runs a worker.
func (s *storm) run(w *blown) {
	url := s.url
	if w.proxy != nil {
		url = "redis://" + s.userinfo + w.proxy.Addr()
	}
	s.started++
	app := s.app(url, fmt.Sprint("w", s.started))
	s.declare(app)
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.WithoutCancel(s.ctx))
	s.running.Go(func() {
		defer app.Close()
		if err := app.Run(ctx); err != nil && !w.gone.Load() {
			s.Errorf("worker: %v", err)
		}
	})
}

// hurt does something to one worker.
func (s *storm) hurt() {
	i := s.pick(len(s.workers))
	w := s.workers[i]
	switch x := s.pick(100); {
	case x < 10 || w.proxy == nil: // it ends
		w.stop()
		s.workers = append(s.workers[:i], s.workers[i+1:]...)
		s.start()
	case x < 30: // it is gone for good
		w.gone.Store(true)
		w.proxy.Close()
		w.stop()
		s.workers = append(s.workers[:i], s.workers[i+1:]...)
		s.start()
	case x < 50: // it stands still beyond its lease, as far as the server sees it
		w.proxy.Pause()
		time.AfterFunc(stormLease*3/2, w.proxy.Resume)
	case x < 60:
		w.proxy.HoldReplies(true)
		time.AfterFunc(stormLease*3/2, func() { w.proxy.HoldReplies(false) })
	case x < 65:
		w.proxy.CutAll()
	default: // a request or a reply of a script is lost
		action := []faultproxy.Action{faultproxy.CloseBefore, faultproxy.CloseAfter, faultproxy.Reset, faultproxy.Swallow, faultproxy.Delay(100 * time.Millisecond)}[s.pick(5)]
		w.proxy.On("EVALSHA", 1+s.pick(20)).Do(action)
	}
}

func (s *storm) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// does does something, again if nothing was done because some of its keys were on another node: clients wait a second for these.
func (s *storm) does(what func() error) {
	s.Helper()
	err := what()
	for redisconn.ReplyHas(err, "TRYAGAIN") {
		err = what()
	}
	s.must(err)
}

// last returns the last ID of a topic.
func (s *storm) last(topic string) delivery.ID {
	s.Helper()
	extents, err := s.bus.Calls().Extents(s.ctx, []string{topic})
	s.must(err)
	return extents[topic].Last
}

// end ends all workers.
func (s *storm) end() {
	for _, w := range s.workers {
		w.stop()
	}
	s.running.Wait()
}

// ServeHTTP is all receivers.
func (s *storm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(r.URL.Path, "/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender went away
	}
	items := s.judge.receive(name, r.Header, body)
	time.Sleep(time.Duration(s.pick(2000)) * time.Microsecond)
	if !s.calm.Load() && s.fails(w, r, len(items)) {
		return
	}
	if s.calm.Load() && s.answer != nil {
		if status := s.answer(r); status != http.StatusNoContent {
			w.WriteHeader(status)
			return
		}
	}
	s.judge.answered(name, items)
	if !s.calm.Load() && s.chance(4) {
		panic(http.ErrAbortHandler) // the answer is lost
	}
	w.WriteHeader(http.StatusNoContent)
}

// fails answers a request that fails.
func (s *storm) fails(w http.ResponseWriter, r *http.Request, events int) bool {
	switch x := s.pick(100); {
	case x < 8:
		w.WriteHeader(http.StatusInternalServerError)
	case x < 11 && events > 1:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case x < 12:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case x < 15:
		panic(http.ErrAbortHandler)
	case x < 17:
		select {
		case <-time.After(time.Duration(s.pick(500)) * time.Millisecond):
		case <-r.Context().Done():
			return true
		}
		return false
	default:
		return false
	}
	return true
}
