package redistest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const stopTimeout = 10 * time.Second

// Kill ends the server with kill -9 and returns when it is gone. Killing a server that is down does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
	}
}

// Running reports whether the server's process is there, stopped or not.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.proc.ended()
}

// Stop asks the server to shut down, without saving and without waiting for replicas, and returns when it is gone.
// The append-only file, if any, is complete then. Stopping a server that is down does nothing.
func (s *Server) Stop() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc.ended() {
		return
	}
	o := s.options()
	o.MaxRetries = -1
	c := redis.NewClient(o)
	defer c.Close()
	// The answer of a server that shuts down is a closed connection.
	_ = c.Do(context.Background(), "SHUTDOWN", "NOSAVE", "NOW").Err()
	select {
	case <-s.proc.done:
	case <-time.After(stopTimeout):
		s.t.Fatalf("stop redis-server %s: still running after %v\n%s", s.Addr(), stopTimeout, s.Log())
	}
}

// Restart starts the server again on its port and in its directory, so that it loads its append-only file if it has
// one; a server that still runs is stopped first. A promoted replica comes back as a master.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	var err error
	// A connection that was not closed by a killed server's peer can hold the port for a moment.
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		seen := len(s.Log())
		if err = s.launch(); err == nil {
			return
		}
		if !strings.Contains(s.Log()[seen:], portTaken) {
			break
		}
	}
	s.t.Fatalf("restart redis-server %s: %v\n%s", s.Addr(), err, s.Log())
}

// Replica starts a replica of s and returns when it has everything s had at the call.
func (s *Server) Replica(t testing.TB, args ...string) *Server {
	t.Helper()
	return s.ReplicaVia(t, s.Addr(), args...)
}

// ReplicaVia is Replica with a link that goes through addr: a proxy in front of s that can hold the link back, so
// that the replica falls behind.
func (s *Server) ReplicaVia(t testing.TB, addr string, args ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatalf("replica of %s through %q: %v", s.Addr(), addr, err)
	}
	if s.password != "" {
		args = append([]string{"--masterauth", s.password, "--requirepass", s.password}, args...)
	}
	r := start(t, 0, host+" "+port, args)
	r.WaitSync(t, s)
	return r
}

// WaitSync returns when the replica s has everything that master had at the call.
func (s *Server) WaitSync(t testing.TB, master *Server) {
	t.Helper()
	var target int64
	if !Within(startTimeout, func() (known bool) {
		target, known = offset(replication(master)["master_repl_offset"])
		return known
	}) {
		t.Fatalf("no replication offset of %s within %v", master.Addr(), startTimeout)
	}
	if !Within(startTimeout, func() bool {
		info := replication(s)
		at, known := offset(info["slave_repl_offset"])
		return known && at >= target && info["master_link_status"] == "up"
	}) {
		t.Fatalf("replica %s did not catch up with %s within %v\n%s", s.Addr(), master.Addr(), startTimeout, s.Log())
	}
}

// offset is a number in what a server says of its replication, if it said any.
func offset(text string) (n int64, known bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// Promote makes a replica a master with what it has at this moment.
func (s *Server) Promote() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := redis.NewClient(s.options())
	defer c.Close()
	if err := c.Do(context.Background(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		s.t.Fatalf("promote %s: %v", s.Addr(), err)
	}
	s.replicaOf = ""
}
