//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/faultproxy"
	"github.com/runnel-go/runnel/internal/history"
	"github.com/runnel-go/runnel/internal/testredis"
)

const (
	fewest, most = 3, 6 // workers alive, stopped ones too
	producers    = 4
	keysEach     = 1250 // 5 000 in all
	batchSize    = 40
)

// A scene is one run.
type scene struct {
	t        *testing.T
	duration time.Duration
	rng      *rand.Rand
	dir      string
	redis    *testredis.Server
	faults   *history.Log
	logs     []string
	count    map[string]int
	named    int
	live     []*process
	wg       sync.WaitGroup // what goes on beside the main course

	delivery *delivery // nil: events neither fail nor wait
}

// A process is one worker.
type process struct {
	name    string
	cmd     *exec.Cmd
	proxy   *faultproxy.Proxy
	exited  chan struct{}
	err     error // of Wait, once exited
	stopped bool
}

func TestFaults(t *testing.T) {
	s := newScene(t)
	for range 4 {
		s.start()
	}
	stop := s.produce()
	s.hurt()
	stop()
	s.settle()
	s.judge(history.Options{})
}

// newScene reads from the environment for how long to hurt, and the seed.
func newScene(t *testing.T) *scene {
	duration, seed := 12*time.Second, uint64(time.Now().UnixNano())
	if s := os.Getenv("RUNNEL_CHAOS_DURATION"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		duration = d
	}
	if s := os.Getenv("RUNNEL_CHAOS_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("RUNNEL_CHAOS_SEED=%d RUNNEL_CHAOS_DURATION=%v", seed, duration)
	s := &scene{
		t: t, duration: duration, rng: rand.New(rand.NewPCG(seed, 0)),
		dir: t.TempDir(), redis: testredis.Start(t), count: map[string]int{},
	}
	s.faults = s.open("driver")
	return s
}

func (s *scene) open(name string) *history.Log {
	path := filepath.Join(s.dir, name+".ndjson")
	log, err := history.Open(path, name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.logs = append(s.logs, path)
	s.t.Cleanup(func() { log.Close() })
	return log
}

// start starts a worker process behind a proxy of its own.
func (s *scene) start() {
	s.named++
	name := fmt.Sprint("w", s.named)
	p := &process{name: name, proxy: faultproxy.Start(s.t, s.redis.Addr()), exited: make(chan struct{})}
	path := filepath.Join(s.dir, name+".ndjson")
	s.logs = append(s.logs, path)
	out, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), "RUNNEL_CHAOS_WORKER="+name, "RUNNEL_CHAOS_URL=redis://"+p.proxy.Addr(), "RUNNEL_CHAOS_LOG="+path)
	if s.delivery != nil {
		p.cmd.Env = append(p.cmd.Env, "RUNNEL_CHAOS_DELIVERY=1")
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.wg.Go(func() {
		p.err = p.cmd.Wait()
		out.Close()
		close(p.exited)
	})
	s.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
	})
	s.live = append(s.live, p)
}

// hurt does something to somebody, again and again.
func (s *scene) hurt() {
	end := time.NewTimer(s.duration)
	defer end.Stop()
	for {
		pause := time.NewTimer(300*time.Millisecond + time.Duration(s.rng.IntN(700))*time.Millisecond)
		select {
		case <-end.C:
			pause.Stop()
			return
		case <-pause.C:
		}
		s.reap()
		if len(s.live) < fewest {
			s.join()
			continue
		}
		p := s.live[s.rng.IntN(len(s.live))]
		switch s.rng.IntN(5) {
		case 0:
			s.fault(p, history.Kill, syscall.SIGKILL)
			s.drop(p)
		case 1:
			if !p.stopped {
				s.freeze(p)
			}
		case 2:
			if !p.stopped {
				s.terminate(p)
			}
		case 3:
			if len(s.live) < most {
				s.join()
			}
		case 4:
			s.note(p, history.Cut)
			p.proxy.CutAll()
		}
	}
}

func (s *scene) note(p *process, fault string) {
	s.count[fault]++
	if err := s.faults.Fault(p.name, fault); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) fault(p *process, fault string, sig syscall.Signal) {
	s.note(p, fault)
	p.cmd.Process.Signal(sig)
}

func (s *scene) join() {
	s.start()
	s.note(s.live[len(s.live)-1], history.Join)
}

// freeze stops a process for longer than a lease.
func (s *scene) freeze(p *process) {
	s.fault(p, history.Stop, syscall.SIGSTOP)
	p.stopped = true
	d := lockExpiry + time.Duration(s.rng.Int64N(int64(2*lockExpiry)))
	s.wg.Go(func() {
		select {
		case <-p.exited:
		case <-time.After(d):
			s.faults.Fault(p.name, history.Cont)
			p.cmd.Process.Signal(syscall.SIGCONT)
		}
	})
}

// terminate ends a process by SIGTERM: it has to drain and exit 0.
func (s *scene) terminate(p *process) {
	s.fault(p, history.Term, syscall.SIGTERM)
	s.drop(p)
	s.wg.Go(func() {
		select {
		case <-p.exited:
			if p.err != nil && !s.poisoned(p) {
				s.t.Errorf("worker %s after SIGTERM: %v\n%s", p.name, p.err, s.tail(p))
			}
		case <-time.After(30 * time.Second):
			s.t.Errorf("worker %s does not end after SIGTERM\n%s", p.name, s.tail(p))
			p.cmd.Process.Kill()
		}
	})
}

func (s *scene) drop(p *process) {
	for i := range s.live {
		if s.live[i] == p {
			s.live = append(s.live[:i], s.live[i+1:]...)
			return
		}
	}
}

// reap looks for workers that ended without being asked to.
func (s *scene) reap() {
	for _, p := range append([]*process(nil), s.live...) {
		select {
		case <-p.exited:
			if s.poisoned(p) {
				s.drop(p)
				continue
			}
			s.t.Errorf("worker %s ended by itself: %v\n%s", p.name, p.err, s.tail(p))
			s.drop(p)
		default:
		}
	}
}

func (s *scene) tail(p *process) string {
	b, _ := os.ReadFile(filepath.Join(s.dir, p.name+".log"))
	if len(b) > 4000 {
		b = b[len(b)-4000:]
	}
	return string(b)
}

// settle ends the faults, waits until everything is processed, and ends the
// workers.
func (s *scene) settle() {
	for len(s.live) < fewest {
		s.start()
	}
	rdb := s.redis.Client(s.t)
	deadline := time.Now().Add(60 * time.Second)
	for s.positions(rdb) != "" {
		s.reap()
		for len(s.live) < fewest { // some end by an event that ends its process
			s.start()
		}
		if time.Now().After(deadline) {
			s.t.Errorf("not everything is processed:\n%s", s.positions(rdb))
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	s.reap()
	for _, p := range append([]*process(nil), s.live...) {
		s.terminate(p)
	}
	s.wg.Wait()
	if left := s.positions(rdb); left != "" {
		s.t.Errorf("at rest:\n%s", left)
	}
}

// positions tells where a partition is not at rest: it has one group, nothing
// pending, and everything was delivered.
func (s *scene) positions(rdb *redis.Client) (out string) {
	for p := range partitions {
		key := fmt.Sprint("__strm:chaos.jobs.", p)
		info, err := rdb.XInfoStream(s.t.Context(), key).Result()
		if err != nil {
			out += fmt.Sprintln(key, err)
			continue
		}
		groups, err := rdb.XInfoGroups(s.t.Context(), key).Result()
		if err != nil || len(groups) != 1 || groups[0].Pending != 0 || groups[0].LastDeliveredID != info.LastGeneratedID || groups[0].Lag != 0 {
			out += fmt.Sprintln(key, info.LastGeneratedID, groups, err)
		}
	}
	if s.delivery != nil {
		out += s.delivery.waiting(rdb)
	}
	return out
}

// judge has the history checked.
func (s *scene) judge(opts history.Options) {
	rdb := s.redis.Client(s.t)
	found := s.open("found")
	for p := range partitions {
		entries, err := rdb.XRange(s.t.Context(), fmt.Sprint("__strm:chaos.jobs.", p), "-", "+").Result()
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range entries {
			var j job
			data, _ := e.Values["data"].(string)
			if err := runnel.MsgPack.Decode([]byte(data), &j); err != nil {
				s.t.Fatal(err)
			}
			at, _ := e.Values["__at"].(string)
			due, _ := strconv.ParseInt(at, 10, 64) // 0 for none
			if err := found.Write(history.Record{Kind: history.Appended, Stream: "jobs", Partition: p, IDs: []string{e.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq}, Due: due}); err != nil {
				s.t.Fatal(err)
			}
			if s.delivery != nil {
				s.delivery.found(j, due)
			}
		}
	}
	if s.delivery != nil {
		s.delivery.judge(found)
	}
	records, err := history.Read(s.logs...)
	if err != nil {
		s.t.Fatal(err)
	}
	opts.Processors = []string{"check"}
	report := history.Check(records, opts)
	s.t.Logf("faults %v\n%v", s.count, report)
	s.t.Log(gaps(records))
	if !report.OK || os.Getenv("RUNNEL_CHAOS_KEEP") != "" {
		keep := filepath.Join(os.TempDir(), "runnel-chaos")
		os.RemoveAll(keep)
		if err := os.CopyFS(keep, os.DirFS(s.dir)); err == nil {
			s.t.Log("logs kept in", keep)
		}
	}
	if !report.OK {
		s.t.Error("the history breaks a promise")
	}
}
