//go:build unix

// Workers are killed in the middle of a backfill.

package schedule_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/schedule"
)

// killedEnv names the server of a worker that is a process of its own.
const killedEnv = "RUNNEL_TEST_KILLED_WORKER"

func TestMain(m *testing.M) {
	if url := os.Getenv(killedEnv); url != "" {
		killedWorker(url)
		return
	}
	os.Exit(m.Run())
}

// backfilled is how many times are filled: RUNNEL_TEST_BACKFILL, 10 000 without.
var backfilled = func() time.Duration {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("RUNNEL_TEST_BACKFILL"), "10000"))
	if err != nil {
		panic(err)
	}
	return time.Duration(n)
}()

const kills = 20

var filledFrom = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// filled declares a job whose runs are counted in the server.
func filled(app *runnel.App, rdb *redis.Client) *schedule.Scheduler {
	s := schedule.New(app, "schedule", &schedule.Options{Partitions: 8, Lease: time.Second, Concurrency: 16})
	does := func(ctx context.Context, r *schedule.Run) error {
		return rdb.HIncrBy(ctx, "ran", fmt.Sprintf("%s %d", r.Task, r.Time.UnixMilli()), 1).Err()
	}
	s.Job("j", schedule.Job{
		Triggers: []schedule.Trigger{{Name: "minute", Every: time.Minute, Start: filledFrom, End: filledFrom.Add(backfilled * time.Minute), CatchUp: schedule.CatchUpNone}},
		Tasks: []schedule.Task{
			{Name: "a", After: []string{"trigger/minute"}, Do: does},
			{Name: "b", After: []string{"task/a"}, Do: does},
		},
	})
	return s
}

func killedWorker(url string) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		panic(err)
	}
	app := runnel.New("shop", &runnel.Options{RedisURL: url})
	filled(app, redis.NewClient(opts))
	if err := app.Run(context.Background()); err != nil {
		panic(err)
	}
}

// A killed is workers that are processes of their own.
type killed struct {
	*testing.T
	url     string
	workers [3]*exec.Cmd
	log     redistest.Log
}

func (k *killed) start(i int) {
	k.workers[i] = exec.Command(os.Args[0])
	k.workers[i].Env = append(os.Environ(), killedEnv+"="+k.url)
	k.workers[i].Stderr = &k.log
	if err := k.workers[i].Start(); err != nil {
		k.Fatal(err)
	}
}

func (k *killed) kill(i int) {
	_ = k.workers[i].Process.Kill()
	_ = k.workers[i].Wait()
}

// TestABackfillSurvivesKills kills workers in the middle of a backfill: each time runs, and has one success. An activation does not
// wait behind it.
func TestABackfillSurvivesKills(t *testing.T) {
	tier.Server(t)
	tier.Sequential(t)
	server := redistest.Start(t)
	rdb, ctx := server.Client(t), t.Context()
	all := &killed{T: t, url: server.URL()}
	for i := range all.workers {
		all.start(i)
		defer func() { all.kill(i) }()
	}
	app := runnel.New("shop", &runnel.Options{RedisURL: server.URL(), LogLevel: "error"})
	defer app.Close()
	s := filled(app, rdb)
	must := func(op *schedule.Op, err error) {
		t.Helper()
		if err == nil {
			_, err = op.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	redistest.Eventually(t, "the job is there", func() bool { return rdb.HLen(ctx, "__sjobs:shop.schedule.0").Val() == 1 })
	must(s.Backfill(ctx, schedule.Backfill{Job: "j", From: filledFrom, To: filledFrom.Add(backfilled * time.Minute)}, nil))
	for k := range kills {
		time.Sleep(time.Duration(rand.IntN(int(backfilled/20))) * time.Millisecond)
		// A run that loses three workers has crashed for good.
		redistest.Eventually(t, "what lost a worker has ended", func() bool { return cellsOf(t, rdb).hurt == 0 })
		i := rand.IntN(len(all.workers))
		all.kill(i)
		all.start(i)
		if k == kills/2 {
			must(s.Activate(ctx, schedule.Activation{Job: "j", Tasks: []string{"b"}, Time: filledFrom.Add(-time.Minute)}, nil))
		}
	}
	if !redistest.Within(4*time.Minute, func() bool { return cellsOf(t, rdb).states["success"] == int(2*backfilled+1) }) {
		t.Fatalf("of %d runs: %+v\n%s", int(2*backfilled+1), cellsOf(t, rdb), &all.log)
	}
	must(s.Backfill(ctx, schedule.Backfill{Job: "j", From: filledFrom, To: filledFrom.Add(backfilled * time.Minute)}, nil))
	redistest.Eventually(t, "the second backfill is over", func() bool {
		over := true
		for n := range 8 {
			over = over && rdb.ZCard(ctx, fmt.Sprintf("__sheap:shop.schedule.%d", n)).Val() == 0
		}
		return over
	})
	if n := rdb.HLen(ctx, "ran").Val(); n != int64(2*backfilled+1) {
		t.Errorf("%d of %d runs", n, int(2*backfilled+1))
	}
	if got := cellsOf(t, rdb); got.states["success"] != int(2*backfilled+1) {
		t.Errorf("%+v", got)
	}
}

type cells struct {
	states map[string]int
	hurt   int // have lost a worker, and are not over
}

// cellsOf counts cells. Each has fired once.
func cellsOf(t *testing.T, rdb *redis.Client) cells {
	t.Helper()
	all := cells{states: map[string]int{}}
	for p := range 8 {
		for at, text := range rdb.HGetAll(t.Context(), fmt.Sprintf("__scell:shop.schedule.%d", p)).Val() {
			var cell struct {
				S    string
				G, K int
			}
			if err := json.Unmarshal([]byte(text), &cell); err != nil {
				t.Fatal(err)
			}
			all.states[cell.S]++
			if cell.K > 0 && (cell.S == "queued" || cell.S == "running") {
				all.hurt++
			}
			if cell.G > 1 {
				t.Fatalf("%s fired %d times", at, cell.G)
			}
		}
	}
	return all
}
