package inspect

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A ServerState is the state of a server as it reports it.
type ServerState struct {
	Version    string
	Master     string        // address of its master, "" if it is no replica
	Memory     int64         // bytes used
	MaxMemory  int64         // bytes, 0 without a limit
	CPU        time.Duration // since its start, of all threads
	CPUUnknown bool          // not reported, as by an embedded server
}

// Server returns the state of a server.
func Server(ctx context.Context, c *store.Client) (ServerState, error) {
	text, err := c.Redis().Info(ctx).Result()
	if err != nil {
		return ServerState{}, fmt.Errorf("redis at %s: INFO: %w", c.Addr(), err)
	}
	info := sectionsOf(text)
	s := ServerState{
		Version: redisconn.ParseVersion(text).String(), Memory: number(info["memory"]["used_memory"]), MaxMemory: number(info["memory"]["maxmemory"]),
	}
	if of := info["replication"]; of["role"] == "slave" {
		s.Master = net.JoinHostPort(of["master_host"], of["master_port"])
	}
	system, err1 := strconv.ParseFloat(info["cpu"]["used_cpu_sys"], 64)
	user, err2 := strconv.ParseFloat(info["cpu"]["used_cpu_user"], 64)
	s.CPU, s.CPUUnknown = time.Duration((system+user)*float64(time.Second)), err1 != nil || err2 != nil
	return s, nil
}
