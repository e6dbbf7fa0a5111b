package conformance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const tick = 100 * time.Millisecond

func init() { children["durable"] = tickOnLeader }

// tickOnLeader is a worker with a durable task that prints its due times.
func tickOnLeader(args []string) int {
	go func() { // it does not outlive who started it
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	app := runnel.New("clock", &runnel.Options{
		RedisURL: args[0], WorkerName: args[1], LeaderPoll: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	app.Every("tick", tick, func(ctx context.Context) error {
		fmt.Println(runnel.DueTime(ctx).UnixMilli())
		return nil
	}, &runnel.TaskOptions{Leader: true, Durable: true, CatchUp: runnel.CatchUpAll})
	if err := app.Run(context.Background()); err != nil {
		return 1
	}
	return 0
}

// dueTimes are what all workers have printed.
type dueTimes struct {
	mu  sync.Mutex
	all []int64
}

func (d *dueTimes) add(ms int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, ms)
}

func (d *dueTimes) sorted() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(slices.Values(d.all))
}

// startTicking starts a worker that notes its due times, and returns what kills it.
func startTicking(t *testing.T, url, name string, due *dueTimes) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "durable", url, name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			ms, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Errorf("worker %s printed %q", name, lines.Text())
				return
			}
			due.add(ms)
		}
	}()
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		<-read
		cmd.Wait()
	})
	t.Cleanup(kill)
	return kill
}

// Leaders are killed, one after the other. Of each due time there is one run, but
// for those whose worker died between its claim and its print.
func TestDurableTaskOfKilledLeaders(t *testing.T) {
	const kills, workers = 6, 3
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	var due dueTimes
	running := map[string]func(){}
	for n := range workers {
		name := fmt.Sprint("w", n)
		running[name] = startTicking(t, srv.URL(), name, &due)
	}
	enough := time.Now().Add(2 * time.Minute)
	for n := range kills {
		before := len(due.sorted())
		for leader := ""; running[leader] == nil || len(due.sorted()) < before+5; {
			if time.Now().After(enough) {
				t.Fatalf("after %d kills the task does not run; leader %q", n, leader)
			}
			<-time.After(5 * time.Millisecond)
			token, _ := rdb.Get(t.Context(), "__leader:clock").Result()
			leader, _, _ = strings.Cut(token, "/")
		}
		token, _ := rdb.Get(t.Context(), "__leader:clock").Result()
		leader, _, _ := strings.Cut(token, "/")
		if running[leader] == nil {
			continue // between two leaders
		}
		running[leader]()
		delete(running, leader)
		name := fmt.Sprint("w", workers+n)
		running[name] = startTicking(t, srv.URL(), name, &due)
	}
	last := len(due.sorted())
	for len(due.sorted()) < last+5 {
		if time.Now().After(enough) {
			t.Fatal("after the last kill the task does not run")
		}
		<-time.After(5 * time.Millisecond)
	}
	for _, kill := range running {
		kill()
	}
	got := due.sorted()
	if unique := slices.Compact(slices.Clone(got)); len(unique) != len(got) {
		t.Errorf("%d runs for %d due times", len(got), len(unique))
	}
	for _, ms := range got {
		if (ms-got[0])%tick.Milliseconds() != 0 {
			t.Errorf("due time %d is not in the row of %d", ms, got[0])
		}
	}
	all := int((got[len(got)-1]-got[0])/tick.Milliseconds()) + 1
	t.Logf("%d runs for %d due times, %d leaders killed", len(got), all, kills)
	if len(got) < all-kills {
		t.Errorf("%d runs for %d due times, though only %d leaders were killed", len(got), all, kills)
	}
}
