package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A pause and a block outlive everything: redis-server is killed and starts again,
// workers end and others begin.
func TestRulesSurviveARestartOfEverything(t *testing.T) {
	const partitions = 4
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	tr := newTracker(history.Memory())
	start := func(name string) *parcelApp {
		a := newParcelApp(t, srv.URL(), name, func(o *runnel.Options) {
			o.Stream.Partitions, o.Processor.Lease = partitions, shortExpiry
		})
		tr.process(a, "check", nil, nil)
		return a.run()
	}
	producer := newProducer(t, srv.URL(), partitions)
	rules, check := admin.New(producer.app), admin.ProcessorScope("parcels", "check")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := start("w1")
	ready(t, 30*time.Second, a)
	do(rules.Pause(t.Context(), check, nil))
	do(rules.Block(t.Context(), admin.AppScope(), &admin.RuleOptions{Who: "root", Why: "the test"}))
	do(rules.Wait(t.Context(), check))
	producer.send(parcel{Key: "a", Seq: 1})
	srv.Kill()
	srv.Restart()
	ready(t, 60*time.Second, a)
	b := start("w2")
	ready(t, 60*time.Second, a, b)
	do(a.stop())
	ready(t, 60*time.Second, b)
	for _, lift := range []func(context.Context, admin.Scope) error{rules.Resume, rules.Unblock} {
		do(rules.Wait(t.Context(), check))
		if n := tr.completed(); n != 0 {
			t.Errorf("%d events were processed, though they were held back", n)
		}
		scope := check
		list, err := rules.Rules(t.Context())
		if err == nil && len(list) == 1 {
			scope = list[0].Scope
			if list[0].Who != "root" || list[0].Why != "the test" {
				t.Errorf("left is %+v", list[0])
			}
		}
		do(err)
		do(lift(t.Context(), scope))
	}
	await(t, "the event", 30*time.Second, func() bool { return tr.completed() == 1 })
	do(b.stop())
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}
