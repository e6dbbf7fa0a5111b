//go:build unix

package chaos

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/history"
)

func (s *scene) forgetScripts(rdb *redis.Client) {
	s.note("scripts", history.Scripts, "")
	if err := rdb.ScriptFlush(s.t.Context()).Err(); err != nil {
		s.t.Errorf("SCRIPT FLUSH: %v", err)
	}
}

// replication bounds the time until replicas have the latest writes.
const replication = 20 * time.Second

// flushed is FLUSHALL after a last read of the ends of logs, so that no later entry has an earlier
// ID. In a cluster a transaction could not read more than one slot.
var flushed = redis.NewScript(`
	local found = {}
	for i = 1, #ARGV, 2 do
		found[#found + 1] = redis.call('XRANGE', ARGV[i], ARGV[i + 1], '+')
	end
	redis.call('FLUSHALL')
	for i = 1, 2e6 do end -- milliseconds
	return found`)

// flush is FLUSHALL of a server with these partitions and so many replicas. It reads the contents
// at the same moment, so that the check knows what is lost and excuses nothing else.
func (s *scene) flush(rdb *redis.Client, where []int, replicas int) {
	s.tender.loses.Store(true)
	s.still.Lock() // nothing is held back, or being sent for later
	defer s.still.Unlock()
	ctx, conn := s.t.Context(), rdb.Conn()
	defer conn.Close()
	err := s.watch.collect(where, func(logs []tail) ([][]redis.XMessage, error) {
		var args []any
		for _, l := range logs {
			args = append(args, l.key, l.from)
		}
		s.note("flush", history.Wipe, "")
		return logsOf(flushed.Eval(ctx, conn, nil, args...).Slice())
	})
	if err != nil {
		s.t.Errorf("FLUSHALL: %v", err)
	}
	s.watch.wiped(where)
	// A failover must not bring back what the history says is gone.
	if n, err := conn.Wait(ctx, replicas, replication).Result(); err != nil || int(n) < replicas {
		s.t.Errorf("FLUSHALL reached %d of %d replicas: %v", n, replicas, err)
	}
}

func logsOf(reply []any, err error) (logs [][]redis.XMessage, _ error) {
	for _, log := range reply {
		var list []redis.XMessage
		for _, e := range log.([]any) {
			id, fields := e.([]any)[0].(string), e.([]any)[1].([]any)
			m := redis.XMessage{ID: id, Values: map[string]any{}}
			for i := 0; i < len(fields); i += 2 {
				m.Values[fields[i].(string)] = fields[i+1]
			}
			list = append(list, m)
		}
		logs = append(logs, list)
	}
	return logs, err
}
