package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// failoverLimit is how long a failover and what follows may take on a busy machine.
const failoverLimit = 2 * time.Minute

// byURL and byClient are the two ways to say that sentinels know the master.
func byURL(_ testing.TB, w *redistest.Watched, o *runnel.Options) { o.Redis, o.RedisURL = nil, w.URL() }

func byClient(t testing.TB, w *redistest.Watched, o *runnel.Options) {
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: w.SentinelAddrs(), DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	o.Redis, o.RedisURL = c, ""
}

// watchedApp is an app on what sentinels watch.
func watchedApp(t testing.TB, w *redistest.Watched, name string, durability runnel.Durability, how func(testing.TB, *redistest.Watched, *runnel.Options)) *parcelApp {
	return newParcelApp(t, w.Servers()[0].URL(), name, func(o *runnel.Options) {
		how(t, w, o)
		o.Durability = durability
		o.Stream.Partitions = 4
		o.Processor.Lease = 5 * time.Second
	})
}

// A doggedProducer sends to some keys in turn, each record with an ID, until it is
// told that it is in, and only then the next one of that key.
type doggedProducer struct {
	app  *parcelApp
	log  *history.Log
	keys int

	mu  sync.Mutex
	in  map[string]int64 // largest seq that was acknowledged
	bad map[string]int   // answers that were errors, by kind
}

func (p *doggedProducer) acknowledged() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.in)
}

// run sends until ctx ends, and then what it has begun.
func (p *doggedProducer) run(ctx context.Context, t testing.TB) {
	for seq := int64(1); ctx.Err() == nil; seq++ {
		var batch []runnel.Outgoing[parcel]
		for k := range p.keys {
			key := fmt.Sprint("k", k)
			batch = append(batch, runnel.Outgoing[parcel]{Record: parcel{Key: key, Seq: seq}, DedupID: fmt.Sprint(key, "/", seq)})
		}
		for len(batch) > 0 {
			batch = p.send(t, batch)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// send sends once and returns what has to be sent again.
func (p *doggedProducer) send(t testing.TB, batch []runnel.Outgoing[parcel]) (again []runnel.Outgoing[parcel]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	sent, err := p.app.parcels.SendEvents(ctx, batch...)
	var se *runnel.SendError
	if err != nil && !errors.As(err, &se) {
		<-time.After(50 * time.Millisecond) // before anything was sent
		return batch
	}
	failed := map[int]runnel.SendFailure{}
	if se != nil {
		<-time.After(50 * time.Millisecond)
		for _, f := range se.Failed {
			failed[f.Index] = f
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range batch {
		f, bad := failed[i]
		switch {
		case !bad:
			err = p.log.Sent("parcels", sent[i].Partition, sent[i].ID, o.Record.Key, o.Record.Seq)
			p.in[o.Record.Key] = o.Record.Seq
		case f.Unknown:
			p.bad[kindOf(f.Err)]++
			err = p.log.Unknown("parcels", o.Record.Key, o.Record.Seq)
			again = append(again, o)
		default:
			p.bad[kindOf(f.Err)]++
			err, again = nil, append(again, o)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return again
}

func kindOf(err error) string {
	if errors.Is(err, runnel.ErrNotReplicated) {
		return "not replicated"
	}
	return "other"
}

// progress is how far the keys were processed.
type progress struct {
	mu   sync.Mutex
	done map[string]int64
}

func (p *progress) note(_ context.Context, _ *runnel.Event, r parcel) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[r.Key] = max(p.done[r.Key], r.Seq)
	return nil
}

func (p *progress) reached(want map[string]int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, seq := range want {
		if p.done[key] < seq {
			return false
		}
	}
	return len(want) > 0
}

// The master is killed, or hangs, under load: sentinels promote a replica, and
// everybody goes on with that by himself. What was acknowledged is processed, in the
// order of its key, since it was on a replica.
func TestFailoverUnderLoad(t *testing.T) {
	for name, hurt := range map[string]func(*redistest.Server){
		"kill -9": (*redistest.Server).Kill,
		"SIGSTOP": (*redistest.Server).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failOverUnderLoad(t, hurt, name == "SIGSTOP")
		})
	}
}

func failOverUnderLoad(t *testing.T, hurt func(*redistest.Server), thaw bool) {
	durable := runnel.Durability{MinReplicas: 1, Timeout: 5 * time.Second}
	w := redistest.StartWatched(t, 2)
	tr := newTracker(history.Memory())
	progress := &progress{done: map[string]int64{}}
	processed := progress.reached
	workers := []*parcelApp{watchedApp(t, w, "w1", durable, byURL), watchedApp(t, w, "w2", durable, byClient)}
	for _, a := range workers {
		tr.process(a, "check", nil, progress.note)
		a.run()
	}
	ready(t, failoverLimit, workers...)
	p := &doggedProducer{app: watchedApp(t, w, "producer", durable, byURL), log: tr.history.As("producer"), keys: 12, in: map[string]int64{}, bad: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	var producing sync.WaitGroup
	producing.Go(func() { p.run(ctx, t) })
	defer producing.Wait()
	defer stop()
	await(t, "the flow", failoverLimit, func() bool { return processed(map[string]int64{"k0": 50}) })

	old := w.Master()
	if err := tr.history.Fault("", history.Failover); err != nil {
		t.Fatal(err)
	}
	hurt(old)
	took := time.Now()
	master := w.WaitFailover(old)
	t.Logf("another master after %v", time.Since(took).Round(time.Millisecond))
	before := p.acknowledged()
	for key := range before {
		before[key] += 20
	}
	await(t, "all keys to go on", failoverLimit, func() bool { return processed(before) })
	t.Logf("all keys processed 20 more after %v; answers that were errors: %v", time.Since(took).Round(time.Millisecond), p.bad)
	if thaw {
		old.Thaw()
		w.WaitReplica(old)
	}
	stop()
	producing.Wait()
	await(t, "the rest", failoverLimit, func() bool { return processed(p.acknowledged()) })
	awaitRest(t, master, 4, 1)
	for _, a := range workers {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
	tr.judge(t, master, 4, history.Options{Processors: []string{"check"}})
}
