//go:build unix

package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// standalone is one redis-server that syncs its append-only file before it replies: no accepted
// event may be lost, whatever happens to it.
type standalone struct {
	t      *testing.T
	server *redistest.Server
	rdb    *redis.Client
}

func startStandalone(t *testing.T) topology {
	// A limit that fillDisk can lower.
	server := redistest.StartLimited(t, 1<<32, synced...)
	return &standalone{t: t, server: server, rdb: server.Client(t)}
}

func (o *standalone) link() *link {
	p := faultproxy.Start(o.t, o.server.Addr())
	return &link{way: way{URL: "redis://" + p.Addr()}, proxies: []*faultproxy.Proxy{p}}
}

func (o *standalone) client() redis.UniversalClient { return o.rdb }

func (o *standalone) layout() string { return keys.Standalone }

func (o *standalone) some() bool { return false }

func (o *standalone) faults() []fault {
	return []fault{
		{"server-kill", 1, o.kill},
		{"server-stop", 1, o.stop},
		{"scripts", 1, func(s *scene) { s.forgetScripts(o.rdb) }},
		{"flush", 1, func(s *scene) { s.flush(o.rdb, everywhere, 0) }},
		{"memory", 1, o.fillMemory},
		{"disk", 1, o.fillDisk},
	}
}

// kill is kill -9 and, after a moment, a restart from the append-only file.
func (o *standalone) kill(s *scene) {
	s.note("server-kill", history.Down, "")
	o.server.Kill()
	s.rest(time.Duration(s.rng.Int64N(int64(lockExpiry))))
	o.server.Restart()
}

// stop is SIGSTOP for longer than a lease.
func (o *standalone) stop(s *scene) {
	s.note("server-stop", history.Down, "")
	o.server.Freeze()
	s.rest(lockExpiry + time.Duration(s.rng.Int64N(int64(lockExpiry))))
	o.server.Thaw()
	o.await("an answer", func(ctx context.Context) error { return o.rdb.Ping(ctx).Err() })
}

// fillMemory makes the server refuse commands that need memory.
func (o *standalone) fillMemory(s *scene) {
	s.note("memory", history.Full, "")
	o.set("maxmemory", "1mb")
	s.rest(lockExpiry + time.Duration(s.rng.Int64N(int64(lockExpiry))))
	o.set("maxmemory", "0")
}

// fillDisk makes the server refuse every write. With appendfsync always the server would exit,
// which is kill once more; so it syncs every second meanwhile, and is not killed.
func (o *standalone) fillDisk(s *scene) {
	o.set("appendfsync", "everysec")
	s.note("disk", history.Down, "")
	if !o.server.FillDisk() {
		s.t.Log("this system cannot fill a disk")
	}
	s.rest(lockExpiry + time.Duration(s.rng.Int64N(int64(lockExpiry))))
	o.server.FreeDisk()
	o.await("a successful write of the append-only file", func(ctx context.Context) error {
		info := o.rdb.InfoMap(ctx, "persistence")
		if status := info.Item("Persistence", "aof_last_write_status"); status != "ok" {
			return fmt.Errorf("status %q, %v", status, info.Err())
		}
		return nil
	})
	o.set("appendfsync", "always")
}

func (o *standalone) set(name, value string) {
	if err := o.rdb.ConfigSet(o.t.Context(), name, value).Err(); err != nil {
		o.t.Errorf("CONFIG SET %s %s: %v", name, value, err)
	}
}

func (o *standalone) await(what string, try func(ctx context.Context) error) {
	awaitNil(o.t, what, try)
}
