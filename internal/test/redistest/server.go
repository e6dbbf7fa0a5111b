package redistest

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/runnel-go/runnel/internal/test/tier"
)

const (
	startAttempts = 20
	startTimeout  = 20 * time.Second
	pollInterval  = 5 * time.Millisecond
	portTaken     = "Address already in use" // in the log of a server
)

// Server is one redis-server process with a port and a directory of its own. Both stay the same over Restart. Its
// methods may be called concurrently; those that fail end the test with t.Fatal.
type Server struct {
	t        testing.TB
	dir      string
	port     int
	blocks   int // limit on the size of files, 0 for none
	args     []string
	env      []string // beside that of this process
	password string
	sentinel string      // file of its settings, empty for a server of data
	tls      *tls.Config // of clients, nil without TLS

	mu        sync.Mutex
	replicaOf string // "host port", empty for a master
	proc      *process
	log       *Log // in memory: a limit on the size of files must not apply to it
}

// Start starts redis-server without persistence and returns when it answers. args follow the defaults on its command
// line and so override them: Start(t, "--appendonly", "yes"). A "--requirepass" among them is used by URL, Client and
// replicas. The server is killed when the test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, 0, "", args)
}

// StartLimited is Start with a limit on the size of every file the server writes, in blocks of 512 bytes (ulimit -f).
// Past it writes fail with EFBIG, which Redis meets like a full disk. Needs a POSIX sh.
func StartLimited(t testing.TB, blocks int, args ...string) *Server {
	t.Helper()
	return start(t, blocks, "", args)
}

var advise sync.Once // how to install redis-server, not again with each test

func start(t testing.TB, blocks int, replicaOf string, args []string) *Server {
	t.Helper()
	tier.Server(t)
	if _, err := exec.LookPath("redis-server"); err != nil {
		advice := ""
		advise.Do(func() {
			advice = "; these tests need it: apt-get install redis-server (Debian, Ubuntu), dnf install redis (Fedora), brew install redis (macOS)"
		})
		t.Fatal("redis-server is not installed" + advice)
	}
	return launchNew(t, &Server{blocks: blocks, args: args, password: argument(args, "--requirepass"), replicaOf: replicaOf})
}

// Launch is Start for a program that is no test. The caller must call stop, which kills the server and removes its
// directory; none of the methods that fail by ending a test may be called.
func Launch(args ...string) (s *Server, stop func(), err error) {
	dir, err := os.MkdirTemp("", "runnel-redis-")
	if err != nil {
		return nil, nil, fmt.Errorf("start redis-server: %w", err)
	}
	s = &Server{args: args, dir: dir}
	stop = func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	}
	if err := s.launchNew(); err != nil {
		stop()
		return nil, nil, err
	}
	return s, stop, nil
}

func launchNew(t testing.TB, s *Server) *Server {
	t.Helper()
	tier.Server(t)
	s.t, s.dir, s.tls = t, t.TempDir(), tlsConfig(t, s.args)
	t.Cleanup(s.Kill)
	if err := s.launchNew(); err != nil {
		t.Fatal(err)
	}
	return s
}

// launchNew starts the server on a free port, below the ports that systems hand out to outgoing connections: while it
// is down, a client's dial to a port of that range can connect to itself and keep the server from coming back.
func (s *Server) launchNew() error {
	for range startAttempts {
		s.port, s.log = 15000+rand.IntN(17000), &Log{}
		err := s.launch()
		if err == nil {
			return nil
		}
		if !strings.Contains(s.Log(), portTaken) {
			return fmt.Errorf("start redis-server: %w\n%s", err, s.Log())
		}
	}
	return fmt.Errorf("start redis-server: no free port in %d attempts", startAttempts)
}

func argument(args []string, name string) string {
	for i := len(args) - 2; i >= 0; i-- {
		if args[i] == name {
			return args[i+1]
		}
	}
	return ""
}

func (s *Server) commandLine() []string {
	line := append(s.listen(), "--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no")
	if s.sentinel != "" {
		return slices.Concat([]string{s.sentinel, "--sentinel"}, line, s.args)
	}
	line = append(line, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
	if s.replicaOf != "" {
		line = append(line, "--replicaof", s.replicaOf)
	}
	return append(line, s.args...)
}

// launch starts the process on s.port and waits until it answers.
func (s *Server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command("redis-server", s.commandLine()...)
	if s.blocks > 0 {
		// XFSZ is ignored, or the signal would end the server before the write could fail.
		script := fmt.Sprintf(`trap '' XFSZ; ulimit -f %d; exec redis-server "$@"`, s.blocks)
		cmd = exec.Command("sh", append([]string{"-c", script, "redis-server"}, s.commandLine()...)...)
	}
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	s.proc = p
	if err := s.waitReady(p); err != nil {
		p.kill()
		return err
	}
	return nil
}

// waitReady returns when the process p, and not some other server on the port, has answered and loaded its data.
func (s *Server) waitReady(p *process) error {
	o := s.options()
	o.MaxRetries = -1
	c := redis.NewClient(o)
	defer c.Close()
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		select {
		case <-p.done:
			return fmt.Errorf("ended at once: %v", p.err)
		case <-time.After(pollInterval):
		}
		if c.Ping(context.Background()).Err() != nil {
			continue
		}
		pid := c.InfoMap(context.Background(), "server").Item("Server", "process_id")
		if pid == strconv.Itoa(p.pid()) {
			return nil
		}
	}
	return fmt.Errorf("no answer on %s within %v", s.Addr(), startTimeout)
}

// Addr is the server's address, host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the server's address as a redis:// or rediss:// URL, with its password if it has one.
func (s *Server) URL() string {
	if s.password != "" {
		return s.scheme("") + ":" + s.password + "@" + s.Addr()
	}
	return s.scheme("") + s.Addr()
}

// Dir is the server's directory, where its append-only files are.
func (s *Server) Dir() string { return filepath.Clean(s.dir) }

// PID is the process ID of the server, or of the last one if it is down.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.pid()
}

// Log is what the server has printed so far, over all its restarts.
func (s *Server) Log() string { return s.log.String() }

// Client returns a client of this server that sends nothing on its own; it is closed when t ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(s.options())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *Server) options() *redis.Options {
	return &redis.Options{
		Addr: s.Addr(), Password: s.password, TLSConfig: s.tls, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
