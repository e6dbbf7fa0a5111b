// Package server runs private redis-servers.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/bench/internal/proc"
)

const (
	attempts = 20
	patience = 20 * time.Second
	poll     = 5 * time.Millisecond
)

// A Server is a redis-server process on a free port of the loopback, with a
// directory of its own. Close must be called.
type Server struct {
	addr string
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  bytes.Buffer  // what it printed; read it after done
	rdb  *redis.Client
}

// Start starts redis-server without persistence and returns when it answers. args
// follow the defaults on its command line and so override them. The server ends
// with this process at the latest.
func Start(ctx context.Context, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "runnel-bench-")
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	var last error
	for range attempts {
		s := &Server{addr: freeAddr(), dir: dir, done: make(chan struct{})}
		if last = s.launch(ctx, args); last == nil {
			return s, nil
		}
		if !bytes.Contains(s.log.Bytes(), []byte("Address already in use")) {
			break
		}
	}
	os.RemoveAll(dir)
	return nil, fmt.Errorf("start redis-server: %w", last)
}

// freeAddr picks a port below those that systems give to outgoing connections.
func freeAddr() string {
	for {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+rand.IntN(17000)))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
}

func (s *Server) launch(ctx context.Context, args []string) error {
	_, port, _ := net.SplitHostPort(s.addr)
	line := append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no", "--save", "", "--appendonly", "no"}, args...)
	s.cmd = exec.Command("redis-server", line...)
	s.cmd.Dir = s.dir
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.WaitDelay = time.Second
	proc.Tie(s.cmd)
	if err := s.cmd.Start(); err != nil {
		close(s.done)
		return err
	}
	go func() {
		s.cmd.Wait() // how a server ends that was killed says nothing
		close(s.done)
	}()
	s.rdb = redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, ReadTimeout: time.Minute})
	if err := s.ready(ctx); err != nil {
		s.end()
		return fmt.Errorf("%w\n%s", err, s.log.Bytes())
	}
	return nil
}

// ready returns when this process, and none that had the port before, answers.
func (s *Server) ready(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < patience; {
		select {
		case <-s.done:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
		if s.rdb.Ping(ctx).Err() == nil && s.rdb.InfoMap(ctx, "server").Item("Server", "process_id") == strconv.Itoa(s.PID()) {
			return nil
		}
	}
	return fmt.Errorf("no answer on %s within %v", s.addr, patience)
}

// URL is the server's address as a redis:// URL.
func (s *Server) URL() string { return "redis://" + s.addr }

// PID is the process ID of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Client returns a client of the server, which Close closes.
func (s *Server) Client() *redis.Client { return s.rdb }

// CPU is the time that the server's main thread, which executes the commands, has
// spent on a processor.
func (s *Server) CPU(ctx context.Context) (time.Duration, error) {
	info := s.rdb.InfoMap(ctx, "cpu")
	sum := 0.0
	for _, name := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info.Item("CPU", name), 64)
		if err != nil {
			return 0, fmt.Errorf("INFO of redis-server: %s: %w", name, err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second)), nil
}

// Close kills the server and removes its directory.
func (s *Server) Close() error {
	s.end()
	return os.RemoveAll(s.dir)
}

func (s *Server) end() {
	s.rdb.Close()
	s.cmd.Process.Kill() // an error says that it has ended
	<-s.done
}
