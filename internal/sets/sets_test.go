package sets_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/sets"
	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/stage"
)

func init() { extension.Known(sets.New(nil)) } // as the runnel binary does

type listing struct {
	ID    string
	Price int
}

// A market is an app with the set listings, which no worker runs.
type market struct {
	t       *testing.T
	app     *runnel.App
	rdb     redis.UniversalClient
	untyped bool // commands run without the app's code, as those of the runnel binary
}

func newMarket(t *testing.T, opts *stage.Options) *market {
	t.Helper()
	server := redistest.Start(t)
	t.Setenv("RUNNEL_REDIS_URL", server.URL())
	m := &market{t: t, rdb: server.Client(t)}
	app, set := m.declare(opts)
	m.app = app
	m.must(set.Put(t.Context(), listing{"a", 1}))
	m.run(1, `set listings has no stage "price"; it has none until a worker has run it`, "stage", "visit", "listings/price", "a")
	m.work(opts)
	m.must(set.Put(t.Context(), listing{"a", 1}, listing{"b", 2}, listing{"c", 3}))
	return m
}

func (m *market) declare(opts *stage.Options) (*runnel.App, *stage.Set[listing]) {
	app := runnel.New("market", &runnel.Options{LogLevel: "error"})
	m.t.Cleanup(func() { app.Close() })
	set := stage.New(app, "listings", func(l listing) string { return l.ID }, opts)
	for _, name := range []string{"geocode", "price"} {
		set.Stage(name, nil, func(context.Context, *listing) (stage.Result, error) { return stage.Untouched, nil }, nil)
	}
	return app, set
}

// work runs a worker until it has told its stages, and nothing waits.
func (m *market) work(opts *stage.Options) {
	m.t.Helper()
	app, _ := m.declare(opts)
	ctx, cancel := context.WithCancel(m.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	redistest.Eventually(m.t, "the worker is done", func() bool {
		s := m.state()
		return app.Ready() == nil && len(s.Stages) == 2 && s.Touches.Waiting+s.Touches.Running+s.Stages[0].Waiting+s.Stages[0].Running+s.Stages[1].Waiting+s.Stages[1].Running == 0
	})
	cancel()
	m.must(<-ended)
}

func (m *market) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// run runs a command, which must end with the code and print the text, and returns its output.
func (m *market) run(code int, want string, args ...string) string {
	m.t.Helper()
	var out, errs bytes.Buffer
	app := m.app
	if m.untyped {
		app, args = nil, append(args, "--app", "market")
	}
	got := cli.Main(m.t.Context(), app, args, strings.NewReader(""), &out, &errs)
	if got != code || !strings.Contains(out.String()+errs.String(), want) {
		m.t.Errorf("%q: code %d, want %d and %q:\n%s%s", args, got, code, want, out.String(), errs.String())
	}
	return out.String()
}

// state is what stage ls prints of the set.
func (m *market) state() sets.State {
	m.t.Helper()
	var all []sets.State
	m.must(json.Unmarshal([]byte(m.run(0, "", "stage", "ls", "--output", "json")), &all))
	if len(all) != 1 {
		m.t.Fatalf("%+v", all)
	}
	return all[0]
}

func (m *market) partition(id string) int {
	m.t.Helper()
	var e sets.EntityState
	m.must(json.Unmarshal([]byte(m.run(0, "", "stage", "show", "listings", id, "--output", "json")), &e))
	return e.Partition
}

// fail stores a failure of the visit of an entity, and when it is due or has died.
func (m *market) fail(name, id string, dead bool) {
	m.t.Helper()
	n, kind := m.partition(id), "__visit:"
	if dead {
		kind = "__visitdead:"
	}
	m.must(m.rdb.HSet(m.t.Context(), fmt.Sprint("__visitfail:market.listings.", n), name+" "+id, istage.Failure{Attempts: 2, Error: "no ink", Reason: "failed", Dead: dead}.Text()).Err())
	m.must(m.rdb.ZAdd(m.t.Context(), fmt.Sprint(kind, "market.listings.", name, ".", n), redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: id}).Err())
}

// in is how long a visit of a stage has to wait; -1, if there is none.
func (m *market) in(name, id string) time.Duration {
	m.t.Helper()
	at, err := m.rdb.ZScore(m.t.Context(), fmt.Sprint("__visit:market.listings.", name, ".", m.partition(id)), id).Result()
	if err != nil {
		return -1
	}
	return max(time.Until(time.UnixMilli(int64(at))), 0)
}

// Commands act by what Redis has, with the app's code and without.
func TestCommands(t *testing.T) {
	for _, untyped := range []bool{false, true} {
		t.Run(fmt.Sprint("untyped ", untyped), func(t *testing.T) {
			m := newMarket(t, nil)
			m.untyped = untyped
			m.run(1, `no set "things"; there are listings`, "stage", "ls", "things")
			m.run(1, `set listings has no stage "cost"; it has geocode, price`, "stage", "visit", "listings/cost", "a")
			m.run(2, `"listings" is not SET/STAGE`, "stage", "visit", "listings", "a")
			m.run(2, "touch needs a set, and either IDs or --all", "stage", "touch", "listings")
			m.run(2, "--rate 0 is not between 1 and 1 000 000", "stage", "touch", "listings", "--all", "--rate", "0")
			m.run(2, "say --yes", "stage", "touch", "listings", "--all")
			m.run(1, `set listings has no entity "d"`, "stage", "show", "listings", "d")
			m.run(0, `{"ID":"b","Price":2}`, "stage", "show", "listings", "b")

			const at = "2102-01-02T03:04:05Z"
			m.run(0, "1 ID of listings/price to be visited", "stage", "visit", "listings/price", "b", "--at", at)
			want, _ := time.Parse(time.RFC3339, at)
			if in := m.in("price", "b"); (time.Until(want) - in).Abs() > time.Minute {
				t.Errorf("due in %v", in)
			}
			m.run(0, "2 IDs of listings/price to be visited", "stage", "visit", "listings/price", "a", "b", "--after", "1h")
			if a, b := m.in("price", "a"), m.in("price", "b"); a < 50*time.Minute || b > time.Hour { // the earlier one wins
				t.Errorf("due in %v and %v", a, b)
			}
			m.run(2, "excludes --after", "stage", "visit", "listings/price", "a", "--after", "1h", "--at", at)
			m.run(0, "3 entities of listings touched", "stage", "touch", "listings", "--all", "--yes")
			if s := m.state(); s.Entities != 3 || s.Touches.Waiting != 3 || s.Stages[1].Waiting != 2 || s.Stages[1].Due != 0 {
				t.Errorf("%+v", s)
			}
			m.run(0, "1 set with 3 entities in Redis; 2 visits waiting, 0 due", "status")
			m.run(3, "listings/(touches): the first visit has been due for", "check", "--max-age", "0s")
		})
	}
}

// parked and dead act on failed visits of one stage; what is in another state is left alone.
func TestFailuresOfAStage(t *testing.T) {
	m := newMarket(t, nil)
	m.fail("price", "a", false)
	m.fail("price", "b", true)
	m.fail("geocode", "a", true)
	m.run(0, "no ink", "parked", "ls", "listings/price")
	m.run(0, "listings/geocode", "dead", "ls")
	m.run(0, "due now", "parked", "retry", "listings/price", "--id", "a")
	if in := m.in("price", "a"); in != 0 {
		t.Errorf("due in %v", in)
	}
	m.run(0, "dropped", "parked", "drop", "listings/price", "--id", "a", "--yes")
	m.run(0, "retried", "dead", "retry", "listings/price", "--id", "b")
	if a, b := m.in("price", "a"), m.in("price", "b"); a != -1 || b != 0 {
		t.Errorf("due in %v and %v", a, b)
	}
	m.run(1, "what is dead at listings/geocode is no event", "dead", "replay", "listings/geocode", "--yes")
	m.run(0, "dropped", "dead", "drop", "listings/geocode", "--id", "a", "--yes")
	if s := m.state(); s.Stages[0] != (sets.StageState{Stage: "geocode"}) || s.Stages[1].Waiting != 1 || s.Stages[1].Failing+s.Stages[1].Dead != 0 {
		t.Errorf("%+v", s)
	}
}

// What is forgotten of a stage leaves nothing behind. A program whose code has the stage refuses; its worker adds it
// again.
func TestForgetAStage(t *testing.T) {
	m := newMarket(t, nil)
	m.run(0, "", "stage", "visit", "listings/price", "b", "c")
	m.fail("price", "a", false)
	m.fail("price", "c", true)
	m.fail("geocode", "a", true)
	m.run(1, "this program's code has the stage price of set listings", "stage", "rm", "listings/price", "--yes")
	m.untyped = true
	m.run(2, "with 3 visits that wait or run, 1 failed and 1 dead ones? A worker whose code still has the stage", "stage", "rm", "listings/price")
	if s := m.state(); len(s.Stages) != 2 || s.Stages[1].Waiting != 3 {
		t.Errorf("refused: %+v", s)
	}
	m.run(0, "stage price of set listings forgotten, with 3 visits that waited", "stage", "rm", "listings/price", "--yes", "--why", "sold out")
	if s := m.state(); len(s.Stages) != 1 || s.Stages[0].Stage != "geocode" || s.Stages[0].Dead != 1 || s.Entities != 3 {
		t.Errorf("%+v", s)
	}
	for _, key := range m.rdb.Keys(t.Context(), "*.price.*").Val() {
		t.Errorf("left %s", key)
	}
	for _, key := range m.rdb.Keys(t.Context(), "__visitfail:*").Val() {
		for _, left := range m.rdb.HKeys(t.Context(), key).Val() {
			if left != "geocode a" {
				t.Errorf("left %q", left)
			}
		}
	}
	m.run(0, "stage/rm", "audit", "ls")
	m.run(1, `set listings has no stage "price"; it has geocode`, "stage", "rm", "listings/price", "--yes")
	m.work(nil)
}

// Only the app knows where the entities of a partitioner of its own are.
func TestOnlyTheAppKnowsItsPartitioner(t *testing.T) {
	m := newMarket(t, &stage.Options{Partitions: 2, Partitioner: &runnel.Partitioner{Name: "own", Func: func(key string, n int) int { return int(key[0]) % n }}})
	m.untyped = true
	m.run(1, `set listings has the partitioner "own", which only the app knows: use the app's own binary`, "stage", "show", "listings", "a")
	m.run(0, "3 entities of listings touched", "stage", "touch", "listings", "--all", "--yes")
	m.untyped = false
	m.run(0, `{"ID":"a","Price":1}`, "stage", "show", "listings", "a")
}
