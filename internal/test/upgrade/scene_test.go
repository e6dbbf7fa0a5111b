package upgrade

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// prefetch is how many events of a partition a worker may have processed and not yet acked.
const prefetch = 16

// A scene is one app while its workers are replaced.
type scene struct {
	t        *testing.T
	programs map[string]string // by version
	srv      *redistest.Server
	dir      string
	driver   *history.Log
	tally    *tally
	killed   []*process
}

type process struct {
	name, version string
	history, log  string // files
	cmd           *exec.Cmd
	exited        chan struct{}
	err           error // of Wait, once exited
}

func newScene(t *testing.T, programs map[string]string) *scene {
	s := &scene{t: t, programs: programs, srv: redistest.Start(t), dir: t.TempDir(), tally: newTally()}
	var err error
	if s.driver, err = history.Open(filepath.Join(s.dir, "driver.ndjson"), "driver"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.driver.Close() })
	return s
}

func (s *scene) worker(version string) *process {
	s.t.Helper()
	return s.start(s.name("worker", version), version, "work")
}

func (s *scene) name(what, version string) string {
	return fmt.Sprintf("%s-%s-%d", version, what, len(s.tally.of)+1)
}

// senders starts a sender of each version, that of first before the other one's. Workers of the
// version refuser refuse some of what they send.
func (s *scene) senders(first, refuser string) []*process {
	var all []*process
	for _, version := range []string{first, other(first)} {
		p := s.start(s.name("sender", version), version, "send", refuser)
		all = append(all, p)
		s.await(fmt.Sprint("an event of ", p.name), func() bool {
			for _, name := range s.tally.sender {
				if name == p.name {
					return true
				}
			}
			return false
		})
	}
	return all
}

func (s *scene) start(name, version, what string, args ...string) *process {
	s.t.Helper()
	p := &process{name: name, version: version, history: filepath.Join(s.dir, name+".ndjson"), log: filepath.Join(s.dir, name+".log"), exited: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	p.cmd = exec.Command(s.programs[version], append([]string{what, name, p.history}, args...)...)
	p.cmd.Env = append(os.Environ(), "RUNNEL_REDIS_URL="+s.srv.URL(), fmt.Sprint("RUNNEL_PREFETCH=", prefetch))
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	s.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
	})
	s.tally.of[name] = p
	return p
}

// end ends processes by SIGTERM, all at once, which they have to follow.
func (s *scene) end(processes ...*process) {
	s.t.Helper()
	for _, p := range processes {
		s.fault(p, history.Term)
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range processes {
		redistest.Eventually(s.t, "end of "+p.name, p.ended, p.tail)
		if p.err != nil {
			s.t.Fatalf("%s after SIGTERM: %v\n%s", p.name, p.err, p.tail())
		}
	}
}

func (s *scene) kill(p *process) {
	s.t.Helper()
	s.fault(p, history.Kill)
	p.cmd.Process.Kill()
	<-p.exited
	s.killed = append(s.killed, p)
}

// fault writes down what is about to be done to a process, which must not have ended by itself.
func (s *scene) fault(p *process, what string) {
	s.t.Helper()
	if p.ended() {
		s.t.Fatalf("%s ended by itself: %v\n%s", p.name, p.err, p.tail())
	}
	if err := s.driver.Fault(p.name, what); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until the histories show that so holds.
func (s *scene) await(what string, so func() bool) {
	s.t.Helper()
	redistest.Eventually(s.t, what, func() bool {
		if err := s.tally.update(); err != nil {
			s.t.Fatal(err)
		}
		return so()
	}, s.tails)
}

// tails is what the processes logged last.
func (s *scene) tails() string {
	var b strings.Builder
	for _, p := range s.tally.of {
		fmt.Fprintf(&b, "%s:\n%s\n", p.name, p.tail())
	}
	return b.String()
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-2000):])
}

func other(version string) string {
	if version == older {
		return newer
	}
	return older
}
