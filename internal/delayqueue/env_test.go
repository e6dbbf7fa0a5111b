package delayqueue

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/servers"
)

var testKeys = Keys{Due: "due", Versions: "ver", Data: "data", Sequence: "seq"}

// Scripts that use Lib as those of other packages do.
var (
	putScript = redis.NewScript(Lib + `
local id, version = due_put(due_queue(1), ARGV[1] ~= '' and ARGV[1] or nil, tonumber(ARGV[2]), ARGV[3])
return { id, time_text(version) }`)
	inScript  = redis.NewScript(Lib + `return { time_text(time_in(tonumber(ARGV[1]))), time_text(time_now()) }`)
	dueScript = redis.NewScript(Lib + `
local q, now, ids = due_queue(1), time_now(), {}
local found = due_list(q, now, tonumber(ARGV[1]))
for i = 1, #found, 2 do ids[#ids + 1] = found[i] end
return { ids, due_wait(q, now) }`)
)

// An env is a queue on a server.
type env struct {
	Queue
	t   *testing.T
	raw *redis.Client
}

// both runs a test on a redis-server and on the embedded server.
func both(t *testing.T, test func(e *env)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, addr string, _ bool) { test(newEnv(t, addr)) })
}

func newEnv(t *testing.T, addr string) *env {
	t.Helper()
	raw := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { raw.Close() })
	return &env{Queue: New(raw, testKeys), t: t, raw: raw}
}

const far = int64(4e12) // in the year 2096

// put puts an entry due in milliseconds since 1970; the queue names it if id is "".
func (e *env) put(id string, due int64, data string) (given string, version int64) {
	e.t.Helper()
	reply, err := putScript.Run(e.t.Context(), e.raw, testKeys.Names(), id, due, data).StringSlice()
	if err != nil || len(reply) != 2 {
		e.t.Fatalf("put %s: %q, %v", id, reply, err)
	}
	if version, err = strconv.ParseInt(reply[1], 10, 64); err != nil {
		e.t.Fatal(err)
	}
	return reply[0], version
}

// due returns the first n due entries, and the milliseconds until the next is due.
func (e *env) due(n int) (ids string, wait int64) {
	e.t.Helper()
	reply, err := dueScript.Run(e.t.Context(), e.raw, testKeys.Names(), n).Slice()
	if err != nil || len(reply) != 2 {
		e.t.Fatalf("due: %v, %v", reply, err)
	}
	return fmt.Sprint(reply[0]), reply[1].(int64)
}

func (e *env) list() []Entry {
	e.t.Helper()
	l, err := e.List(e.t.Context(), 0, 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	return l
}

func ids(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
