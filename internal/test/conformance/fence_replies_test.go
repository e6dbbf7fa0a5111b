package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

var hurts = []struct {
	name, tag string
	action    faultproxy.Action
}{
	{"close before", "before", faultproxy.CloseBefore},
	{"close after", "after", faultproxy.CloseAfter},
	{"reset", "reset", faultproxy.Reset},
	{"swallow", "swallow", faultproxy.Swallow},
}

// A worker whose n-th request of a kind breaks in one of four ways continues under the same
// executor ID, and no function notices.
func TestBrokenRequests(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	// A swallowed reply is given up after 5 s, that of a refresh after a third of the expiry. The
	// lease must outlast both, with its margin.
	const long, short = 20 * time.Second, calm
	requests := []struct {
		name    string
		expiry  time.Duration
		times   int
		rule    func(r *rig, p *faultproxy.Proxy, n int) *faultproxy.Rule
		atStart bool // the request is one of a start
		release bool // the request is one of a release
	}{
		{"read", long, 3, func(r *rig, p *faultproxy.Proxy, n int) *faultproxy.Rule { return r.onRead(p, n, 0) }, false, false},
		{"ack", long, 3, func(r *rig, p *faultproxy.Proxy, n int) *faultproxy.Rule { return r.onAck(p, n, 0) }, false, false},
		{"lock", long, 1, func(r *rig, p *faultproxy.Proxy, n int) *faultproxy.Rule { return r.onLock(p, n, 1) }, true, false},
		{"takeover", long, 1, func(r *rig, p *faultproxy.Proxy, n int) *faultproxy.Rule { return r.onTakeover(p, n, 1) }, true, false},
		{"refresh", short, 2, (*rig).onRefresh, false, false},
		{"unlock", long, 1, nil, false, true},
	}
	for _, rq := range requests {
		for n := 1; n <= rq.times; n++ {
			for _, h := range hurts {
				t.Run(fmt.Sprintf("%s %d %s", rq.name, n, h.name), func(t *testing.T) {
					t.Parallel()
					r := rigOn(t, srv, fmt.Sprintf("app-%s-%d-%s", rq.name, n, h.tag), streamName, processorName, 2, rq.expiry)
					r.warm()
					proxy := faultproxy.Start(t, srv.Addr())
					var rule *faultproxy.Rule
					if rq.atStart {
						rule = rq.rule(r, proxy, n).Do(h.action)
					}
					stop := r.feed(10 * time.Millisecond)
					m := r.startVia("w1", proxy)
					id := r.ready(m)
					switch {
					case rq.release:
						r.moveAround(m, h.action)
					case !rq.atStart:
						rule = rq.rule(r, proxy, n).Do(h.action)
					}
					if rule != nil {
						rule.Wait(t)
					}
					last := []string{r.addID(0, "*"), r.addID(1, "*")}
					r.await(0, last[0])
					r.await(1, last[1])
					stop()
					r.finishUndisturbed(m, id)
				})
			}
		}
	}
}

// moveAround makes a worker release a partition and take it back, breaking the release of the lock.
func (r *rig) moveAround(m *member, action faultproxy.Action) {
	rules := []*faultproxy.Rule{r.onUnlock(m.proxy, 1, 0).Do(action), r.onUnlock(m.proxy, 1, 1).Do(action)}
	f := r.join()
	p := f.assigned()[0]
	rules[p].Wait(r.t)
	r.eventually("the lock is released", func() bool { return r.get(r.lock(p)) == "" })
	r.back(m, f, p)
}

// A broken send reports which records to send again; no other record is there twice.
func TestBrokenSends(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, records := range []int{1, 3} {
		for n := 1; n <= 3; n++ {
			for _, h := range hurts {
				t.Run(fmt.Sprintf("%d %d %s", records, n, h.name), func(t *testing.T) {
					t.Parallel()
					r := rigOn(t, srv, fmt.Sprintf("send-%d-%d-%s", records, n, h.tag), streamName, processorName, 1, 20*time.Second)
					r.warm()
					m, id := r.startReady("w1")
					proxy := faultproxy.Start(t, srv.Addr())
					rule := proxy.On("EVALSHA", n).Containing(line(r.partition(0))).Do(h.action)
					r.send(proxy, 4, records)
					rule.Wait(t)
					r.finishUndisturbed(m, id)
				})
			}
		}
	}
}

// send sends batches through a proxy. Failed records are sent again before any later one.
func (r *rig) send(proxy *faultproxy.Proxy, calls, records int) {
	app := runnel.New(r.keys.App, &runnel.Options{RedisURL: "redis://" + proxy.Addr()})
	defer app.Close()
	jobs := runnel.NewStream(app, r.stream, func(j job) string { return j.Key },
		&runnel.StreamOptions{Partitions: r.partitions, MaxLen: 1 << 40})
	seq := int64(0)
	for range calls {
		var batch []job
		for range records {
			seq++
			batch = append(batch, job{"key", seq})
		}
		for tries := 0; len(batch) > 0; tries++ {
			if tries == 5 {
				r.t.Fatalf("records %v are not sent after %d tries", batch, tries)
			}
			batch = r.sendOnce(jobs, batch)
		}
	}
}

func (r *rig) sendOnce(jobs *runnel.Stream[job], batch []job) (again []job) {
	out := make([]runnel.Outgoing[job], len(batch))
	for i, j := range batch {
		out[i].Record = j
	}
	log := r.log.As("producer")
	sent, err := jobs.SendEvents(context.Background(), out...)
	var se *runnel.SendError
	if err != nil && !errors.As(err, &se) {
		r.t.Fatal(err)
	}
	failed := map[int]runnel.SendFailure{}
	if se != nil {
		for _, f := range se.Failed {
			failed[f.Index] = f
		}
	}
	for i, j := range batch {
		f, bad := failed[i]
		switch {
		case !bad:
			err = log.Sent(r.stream, sent[i].Partition, sent[i].ID, j.Key, j.Seq)
		case f.Unknown:
			err = log.Unknown(r.stream, j.Key, j.Seq)
			again = append(again, j)
		default:
			err = nil
			again = append(again, j)
		}
		if err != nil {
			r.t.Error(err)
		}
	}
	return again
}
