//go:build unix

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
)

// startPatience is how long a worker waits for Redis at its start; it logs nothing before.
const startPatience = 5 * time.Second

type process struct {
	name    string
	cmd     *exec.Cmd
	link    *link
	log     string // its history
	exited  chan struct{}
	err     error // of Wait, once exited
	stopped bool
	began   time.Time
}

// start starts a worker process with its own link and, if stepping, a wall clock that jumps. Its name says how it reads.
func (s *scene) start(stepping bool) *process {
	s.named++
	reads := s.plan.reads
	if reads == "mixed" {
		reads = []string{"group", "position"}[s.rng.IntN(2)]
	}
	name := fmt.Sprint("w", s.named, "-", reads)
	p := &process{name: name, began: time.Now(), link: s.topo.link(), exited: make(chan struct{})}
	p.log = filepath.Join(s.dir, name+".ndjson")
	s.logs = append(s.logs, p.log)
	out, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	binary := os.Args[0]
	if stepping {
		binary = stepper(s.t)
	}
	p.cmd = exec.Command(binary)
	p.cmd.Env = append(os.Environ(), "RUNNEL_READS="+reads, "RUNNEL_CHAOS_WORKER="+name, "RUNNEL_CHAOS_WAY="+p.link.way.String(), "RUNNEL_CHAOS_LOG="+p.log, fmt.Sprintf("%s=%d", roundVariable, s.round))
	if s.delivery != nil {
		p.cmd.Env = append(p.cmd.Env, "RUNNEL_CHAOS_DELIVERY=1")
	}
	if stepping {
		p.cmd.Env = append(p.cmd.Env, fmt.Sprintf("%s=%d", stepVariable, 1+s.rng.Uint32()))
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.wg.Go(func() {
		p.err = p.cmd.Wait()
		out.Close()
		p.link.each((*faultproxy.Proxy).Close)
		close(p.exited)
	})
	s.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
	})
	s.live = append(s.live, p)
	return p
}

// freeze stops a process for longer than a lease.
func (s *scene) freeze(p *process) {
	s.note("stop", history.Stop, p.name)
	p.cmd.Process.Signal(syscall.SIGSTOP)
	p.stopped = true
	d := lockExpiry + time.Duration(s.rng.Int64N(int64(2*lockExpiry)))
	s.wg.Go(func() {
		select {
		case <-p.exited:
		case <-time.After(d):
			s.write(s.faults, history.Record{Kind: history.Fault, Fault: history.Cont, Worker: p.name})
			p.cmd.Process.Signal(syscall.SIGCONT)
		}
	})
}

// terminate ends a process by SIGTERM, which must drain and exit 0. It does not handle the signal
// before it has opened its history.
func (s *scene) terminate(p *process) {
	awaitNil(s.t, "start of "+p.name, func(context.Context) error {
		select {
		case <-p.exited:
			return nil
		default:
		}
		_, err := os.Stat(p.log)
		return err
	})
	s.note("term", history.Term, p.name)
	p.cmd.Process.Signal(syscall.SIGTERM)
	s.drop(p)
	s.wg.Go(func() {
		select {
		case <-p.exited:
			if p.err != nil && !s.excused(p) {
				s.t.Errorf("worker %s after SIGTERM: %v\n%s", p.name, p.err, s.tail(p))
			}
		case <-time.After(s.plan.patience):
			s.t.Errorf("worker %s does not end after SIGTERM\n%s", p.name, s.tail(p))
			p.cmd.Process.Kill()
		}
	})
}

func (s *scene) drop(p *process) {
	s.live = slices.DeleteFunc(s.live, func(o *process) bool { return o == p })
}

// reap fails on workers that ended unasked.
func (s *scene) reap() {
	for _, p := range slices.Clone(s.live) {
		select {
		case <-p.exited:
			if !s.excused(p) {
				s.t.Errorf("worker %s ended by itself: %v\n%s", p.name, p.err, s.tail(p))
			}
			s.drop(p)
		default:
		}
	}
}

// excused reports whether a process may have failed: an event ended it, or faults kept Redis out of its reach for as long as a worker
// waits at its start.
func (s *scene) excused(p *process) bool {
	printed, _ := os.ReadFile(filepath.Join(s.dir, p.name+".log"))
	never := strings.HasPrefix(string(printed), "app chaos: ") // only the error of its end
	return s.poisoned(p) || never && time.Since(p.began) >= startPatience
}

func (s *scene) tail(p *process) string {
	b, _ := os.ReadFile(filepath.Join(s.dir, p.name+".log"))
	if len(b) > 4000 {
		b = b[len(b)-4000:]
	}
	return string(b)
}
