//go:build unix

// Workers that are processes of their own are killed and stopped between a request and its answer.

package webhook_test

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/webhook"
)

// The environment of a worker that is a process of its own: its server, and its number.
const (
	processEnv = "RUNNEL_TEST_WEBHOOK_WORKER"
	numberEnv  = "RUNNEL_TEST_WEBHOOK_NUMBER"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(processEnv); url != "" {
		workerProcess(url, os.Getenv(numberEnv))
		return
	}
	os.Exit(m.Run())
}

// A labelled transport says which process makes a request.
type labelled string

func (l labelled) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Worker", string(l))
	return http.DefaultTransport.RoundTrip(r)
}

// alone is what a bus has whose partition has one owner, which the test hurts.
func alone(o *webhook.Options) {
	o.Partitions = 1
	o.Retry = &runnel.Retry{Max: 1_000_000, MinBackoff: 30 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
}

func workerProcess(url, number string) {
	app := runnel.New("shop", &runnel.Options{RedisURL: url, WorkerName: "w" + number})
	opts := &webhook.Options{Lease: stormLease, Keep: 50, Timeout: 10 * time.Second, AllowHTTP: true, AllowAddresses: local, Transport: labelled(number)}
	alone(opts)
	webhook.New(app, "bus", opts)
	if err := app.Run(context.Background()); err != nil {
		panic(err)
	}
}

// processes are workers that are processes of their own.
type processes struct {
	*play
	all  map[string]*exec.Cmd // by number
	next int
	log  redistest.Log
}

func newProcesses(t *testing.T, n int) *processes {
	t.Helper()
	p, _, _ := calmly(t, alone)
	all := &processes{play: p, all: map[string]*exec.Cmd{}}
	for range n {
		all.start()
	}
	t.Cleanup(func() {
		for number := range all.all {
			all.kill(number)
		}
	})
	return all
}

func (p *processes) start() {
	p.Helper()
	p.next++
	number := strconv.Itoa(p.next)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processEnv+"="+p.url, numberEnv+"="+number)
	cmd.Stderr = &p.log
	p.must(cmd.Start())
	p.all[number] = cmd
}

func (p *processes) kill(number string) {
	cmd := p.all[number]
	delete(p.all, number)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// stop stops a process, and returns when it stands still.
func (p *processes) stop(number string) {
	p.Helper()
	process := p.all[number].Process
	p.must(process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		p.Fatalf("worker %s: %v, %v", number, status, err)
	}
}

// A seen is a request between its arrival and its answer.
type seen struct {
	id             string
	attempt, epoch int
	worker         string
	answer         chan int
}

// requests returns the requests, each of which waits for its answer.
func (p *processes) requests() <-chan *seen {
	ch := make(chan *seen)
	p.answer = func(r *http.Request) int {
		s := &seen{id: r.Header.Get("Runnel-Batch"), worker: r.Header.Get("Worker"), answer: make(chan int, 1)}
		s.attempt, _ = strconv.Atoi(r.Header.Get("Runnel-Attempt"))
		s.epoch, _ = strconv.Atoi(r.Header.Get("Runnel-Epoch"))
		select {
		case ch <- s:
			return <-s.answer
		case <-p.ctx.Done():
			return http.StatusServiceUnavailable
		}
	}
	return ch
}

// await returns the next request.
func (p *processes) await(ch <-chan *seen) *seen {
	p.Helper()
	select {
	case s := <-ch:
		return s
	case <-time.After(redistest.Patience):
		p.Fatalf("no request comes\n%s", p.log.String())
		return nil
	}
}

// repeats checks that a request is another attempt of a batch by a later owner: the next one, unless that of an owner in between ended before its request. That it has the same events the judge checks.
func (p *processes) repeats(s, was *seen) {
	p.Helper()
	if s.id != was.id || s.attempt <= was.attempt || s.epoch <= was.epoch {
		p.Errorf("behind %s, attempt %d of epoch %d, comes %s, attempt %d of epoch %d", was.id, was.attempt, was.epoch, s.id, s.attempt, s.epoch)
	}
}

// RUNNEL_WEBHOOK_KILLS is how many kills there are.
var kills = cmp.Or(os.Getenv("RUNNEL_WEBHOOK_KILLS"), "50")

func TestKillsBetweenRequestAndAnswer(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	n, err := strconv.Atoi(kills)
	if err != nil {
		t.Fatal(err)
	}
	p := newProcesses(t, 2)
	c := p.tenant("mail", "orders")
	requests := p.requests()
	for i := range n {
		p.publish("orders", 1+p.pick(100))
		for range p.pick(3) { // some batches before, if there are as many
			select {
			case s := <-requests:
				s.answer <- http.StatusNoContent
			case <-time.After(100 * time.Millisecond):
			}
		}
		p.publish("orders", 1)
		hit := p.await(requests)
		p.kill(hit.worker)
		hit.answer <- []int{http.StatusNoContent, http.StatusInternalServerError}[i%2] // nobody hears it
		p.start()
		again := p.await(requests)
		p.repeats(again, hit)
		again.answer <- http.StatusNoContent
	}
	p.answerAll(requests)
	p.judged()
	if c.figures.Dropped > 0 || c.figures.Sent != p.published["orders"] || p.judge.repeats != n || p.judge.late > 0 {
		t.Errorf("%+v of %d, %d repeats in %d kills, %d late", c.figures, p.published["orders"], p.judge.repeats, n, p.judge.late)
	}
	t.Logf("%d kills, %d events, %d requests", n, p.published["orders"], p.judge.requests)
}

// answerAll answers all requests from now on with success.
func (p *processes) answerAll(requests <-chan *seen) {
	go func() {
		for {
			select {
			case s := <-requests:
				s.answer <- http.StatusNoContent
			case <-p.ctx.Done():
				return
			}
		}
	}()
}

// An owner that stands still beyond its lease stores nothing when it goes on.
func TestStopsBetweenRequestAndAnswer(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	p := newProcesses(t, 2)
	c := p.tenant("mail", "orders")
	requests := p.requests()
	const stops = 5
	for range stops {
		p.publish("orders", 60)
		hit := p.await(requests)
		p.stop(hit.worker)
		hit.answer <- http.StatusNoContent // it hears this when it goes on
		again := p.await(requests)
		p.repeats(again, hit)
		p.must(p.all[hit.worker].Process.Signal(syscall.SIGCONT))
		again.answer <- http.StatusNoContent
	}
	p.answerAll(requests)
	p.judged()
	if c.figures.Dropped > 0 || c.figures.Sent != p.published["orders"] {
		t.Errorf("%+v of %d", c.figures, p.published["orders"])
	}
	t.Logf("%d stops, %d events, %d requests, %d repeats, %d late, %d fenced",
		stops, p.published["orders"], p.judge.requests, p.judge.repeats, p.judge.late, p.fenced())
}
