package cluster

import (
	"os"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// Two workers, one of which leaves, handle events of all partitions on three masters in order.
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

// With fewer connections than partitions a worker reads them in turn.
func TestFewConnections(t *testing.T) {
	r := newRig(t, 0)
	app, s := r.app(func(o *runnel.Options) { o.Processor.ReadConns = 2 })
	r.run(app)
	x := r.send(s, 40)
	r.await("some are handled", func() bool { return r.handled(false)["k39"] > 100 })
	r.all(x.end(), false)
	for _, n := range r.k.Nodes() {
		if all, _ := r.reading(n); all == 0 || all > 2+followers() {
			t.Errorf("%d connections read at %s", all, n.Addr())
		}
	}
}

// With enough connections each partition has one, which blocks on the server.
func TestAConnectionForEachPartition(t *testing.T) {
	r := newRig(t, 0)
	app, s := r.app(nil)
	r.run(app)
	r.all(r.send(s, 40).end(), false)
	r.await("all partitions are waited for", func() bool {
		sum := 0
		for _, n := range r.k.Nodes() {
			_, waiting := r.reading(n)
			sum += waiting
		}
		return sum >= partitions && sum <= partitions+followers()
	})
}

// reading returns how many connections read events at a node, and how many of them block there; by position also those
// that follow a control stream, with the same command.
func (r *rig) reading(n *redistest.Server) (all, waiting int) {
	command := " cmd=xreadgroup "
	if byPosition {
		command = " cmd=xread "
	}
	for line := range strings.Lines(n.Client(r.t).ClientList(r.t.Context()).Val()) {
		if strings.Contains(line, command) {
			all++
			waiting += strings.Count(line, " flags=b ")
		}
	}
	return all, waiting
}

// byPosition reports whether workers read by position.
var byPosition = os.Getenv("RUNNEL_READS") == "position"

// followers returns how many of the connections that reading counts may be those of a worker to its control streams.
func followers() int {
	if byPosition {
		return 2
	}
	return 0
}

func TestGivenClient(t *testing.T) {
	r := newRig(t, 0)
	app, s := r.app(func(o *runnel.Options) { o.RedisURL, o.Redis = "", r.k.Client(t) })
	r.run(app)
	x := r.send(s, 20)
	r.await("some are handled", func() bool { return len(r.handled(false)) == 20 })
	r.all(x.end(), false)
}

// doctor checks every master, and the cluster as a whole.
func TestDoctor(t *testing.T) {
	r := newRig(t, 0)
	app, _ := r.app(nil)
	out := r.command(app, "doctor", "")
	for _, want := range []string{"ok       cluster: 3 masters serve all slots", "ok       rights: all that a worker needs"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	for _, n := range r.k.Nodes() {
		for check, want := range map[string]string{
			"version": redistest.Version(t), "role": "a master, which refuses everything while another one is away", "replicas": "none", "persistence": "none", "memory": "noeviction",
		} {
			if want := check + ": node " + n.Addr() + ": " + want; !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	}
}

// A cluster node given as a standalone server is refused, with the remedy.
func TestNodeAsAServerOfItsOwn(t *testing.T) {
	r := newRig(t, 0)
	for _, layout := range []runnel.KeyLayout{runnel.LayoutStandalone, runnel.LayoutCluster} {
		app, s := r.app(func(o *runnel.Options) {
			o.RedisURL, o.KeyLayout = "redis://"+r.k.Nodes()[0].Addr(), layout
		})
		for what, err := range map[string]error{"Run": app.Run(t.Context()), "Send": s.Send(t.Context(), step{"a", 1})} {
			if err == nil || !strings.Contains(err.Error(), "redis+cluster://") {
				t.Errorf("%s under %s: %v", what, layout, err)
			}
		}
	}
}

func TestClusterWithStandaloneKeys(t *testing.T) {
	app, _ := (&rig{t: t, k: redistest.StartCluster(t, 1, 0)}).app(func(o *runnel.Options) { o.KeyLayout = runnel.LayoutStandalone })
	if err := app.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "needs the key layout cluster") {
		t.Errorf("Run: %v", err)
	}
}
