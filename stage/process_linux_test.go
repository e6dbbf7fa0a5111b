// Workers of sets in processes of their own, that are killed and stopped.

package stage_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/stage"
)

const (
	childAddr = "RUNNEL_STAGE_CHILD"
	childDies = "RUNNEL_STAGE_DIES" // one chance of so many at each point, 0 for none
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		atPoint = dies
		child(addr)
		return
	}
	os.Exit(m.Run())
}

// dies ends the process at a point, now and then.
func dies() {
	if n, _ := strconv.Atoi(os.Getenv(childDies)); n > 0 && rand.IntN(n) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

// A deadly hook ends the process while requests are under way, and before their replies are read.
type deadly struct{}

func (deadly) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (deadly) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (deadly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if rand.IntN(2) == 0 {
			timer := time.AfterFunc(rand.N(300*time.Microsecond), dies)
			defer timer.Stop()
		}
		err := next(ctx, cmds)
		dies()
		return err
	}
}

// child is a worker until it is told to end; then it says how many of its calls were refused.
func child(addr string) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	rdb.AddHook(deadly{})
	app := runnel.New("shop", &runnel.Options{Redis: rdb, LogLevel: "error"})
	set := counting(app)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // its parent has died
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if err := app.Run(ctx); err != nil {
		fmt.Println("ended:", err)
	}
	fmt.Println("fenced", stage.Fenced(set))
}

// children are worker processes.
type children struct {
	t      *testing.T
	addr   string
	dies   int
	fenced atomic.Int64
	deaths atomic.Int64
}

// run runs a worker in each of three places, with hurt done to it now and then, until over is closed; then
// it lets the last ones live until settled is closed.
func (c *children) run(over, settled <-chan struct{}, hurt func(p *os.Process)) {
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for !closed(settled) {
				c.one(over, settled, hurt)
			}
		})
	}
	all.Wait()
}

// one runs one process until it ends.
func (c *children) one(over, settled <-chan struct{}, hurt func(p *os.Process)) {
	cmd, out := exec.Command(os.Args[0]), &strings.Builder{}
	deadly := c.dies
	if closed(over) {
		deadly = 0
	}
	cmd.Env = append(os.Environ(), childAddr+"="+c.addr, fmt.Sprint(childDies, "=", deadly))
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	defer stdin.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	for !closed(over) && !closed(ended) {
		select {
		case <-ended:
		case <-time.After(100*time.Millisecond + rand.N(600*time.Millisecond)):
			hurt(cmd.Process)
		}
	}
	if !closed(ended) && deadly > 0 { // the next one dies of nothing
		_ = cmd.Process.Kill()
	}
	select {
	case <-ended:
	case <-settled:
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	var n int64
	if _, err := fmt.Sscanf(out.String(), "fenced %d", &n); err == nil {
		c.fenced.Add(n)
	} else {
		c.deaths.Add(1)
	}
}

// produce changes entities until over is closed, and returns how often each was.
func produce(t *testing.T, set *stage.Set[counted], over <-chan struct{}) map[string]int {
	changes, ctx := map[string]int{}, context.Background()
	for !closed(over) {
		id, err := fmt.Sprint("e", rand.IntN(40)), error(nil)
		if changes[id] == 0 {
			_, err = set.Save(ctx, stage.Entity[counted]{Value: counted{ID: id, N: 1}})
		} else {
			_, err = set.Update(ctx, id, func(e *counted) error {
				e.N++
				return nil
			})
		}
		if err != nil {
			t.Error(err)
		}
		changes[id]++
		time.Sleep(rand.N(4 * time.Millisecond))
	}
	return changes
}

// hurting runs workers that are hurt until enough is true, and checks the state that is reached.
func hurting(t *testing.T, dies int, hurt func(p *os.Process), enough func(c *children) bool) {
	t.Helper()
	addr := redistest.Start(t).Addr()
	app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr})
	defer app.Close()
	set, c := counting(app), &children{t: t, addr: addr, dies: dies}
	over, settled := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { c.run(over, settled, hurt) })
	made := make(chan map[string]int)
	go func() { made <- produce(t, set, over) }()
	for !enough(c) {
		time.Sleep(10 * time.Millisecond)
	}
	close(over)
	changes := <-made
	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	defer rdb.Close()
	left := "?"
	for end := time.Now().Add(2 * time.Minute); left != "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = leftOf(t.Context(), set, rdb, changes)
	}
	if left != "" {
		t.Errorf("not at the fixpoint: %s", left)
	}
	close(settled)
	running.Wait()
	all := 0
	for _, n := range changes {
		all += n
	}
	t.Logf("%d changes, %d workers died, %d calls refused", all, c.deaths.Load(), c.fenced.Load())
}

// Workers that are killed at any time, and at each point of a visit, leave nothing out and do nothing twice.
func TestKilledProcessesReachTheFixpoint(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	hurting(t, 400, func(p *os.Process) { _ = p.Kill() }, func(c *children) bool { return c.deaths.Load() >= 120 })
}

// Workers that stood still for longer than their lease change nothing that their successors have: most look
// at their lease before they store anything, and what they had sent is refused.
func TestStoppedProcessesChangeNothing(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	var stops atomic.Int64
	hurting(t, 0, func(p *os.Process) {
		stops.Add(1)
		_ = p.Signal(syscall.SIGSTOP)
		time.Sleep(1200 * time.Millisecond)
		_ = p.Signal(syscall.SIGCONT)
	}, func(*children) bool { return stops.Load() >= 36 })
}
