package clusters

import (
	"testing"

	"github.com/runnel-go/runnel"
)

// Events of all partitions, on three masters, are handled in order, by two workers, of
// which one goes.
func TestEventsFlow(t *testing.T) {
	r := newRig(t, 0)
	app, s := r.app(nil)
	r.run(app)
	second, _ := r.app(nil)
	stop := r.run(second)
	x := r.send(s, 40)
	r.await("some are handled", func() bool { return len(r.handled(false)) == 40 })
	stop()
	r.await("more are handled", func() bool { return r.handled(true)["k39"] > 100 })
	r.all(x.end(), true)
	for _, err := range x.errs {
		t.Errorf("a send failed: %v", err)
	}
}

// With fewer connections than partitions a worker asks for them in turn.
func TestFewConnections(t *testing.T) {
	r := newRig(t, 0)
	app, s := r.app(func(o *runnel.Options) { o.Processor.ReadConns = 2 })
	r.run(app)
	x := r.send(s, 40)
	r.await("some are handled", func() bool { return r.handled(false)["k39"] > 100 })
	r.all(x.end(), false)
}

// A ClusterClient may be given instead of a URL.
func TestGivenClient(t *testing.T) {
	r := newRig(t, 0)
	app, s := r.app(func(o *runnel.Options) { o.RedisURL, o.Redis = "", r.k.Client(t) })
	r.run(app)
	x := r.send(s, 20)
	r.await("some are handled", func() bool { return len(r.handled(false)) == 20 })
	r.all(x.end(), false)
}
