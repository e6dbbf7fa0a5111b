// A released partition is kept until its function has returned, or its grace is over; a lost one
// ends its function before its lock expires.

package runnel_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// busy is a function that notes "<worker> begins", waits for the end of its
// context or for d, and notes how that ended.
func busy(n *notes, d time.Duration, heeds bool) runnel.ProcessFunc[item] {
	return runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		name := runneltest.WorkerOf(ctx).Name()
		n.add(name + " begins")
		began, done := time.Now(), ctx.Done()
		if !heeds {
			done = nil
		}
		select {
		case <-time.After(d):
			n.add(name + " ends")
			return nil
		case <-done:
			n.add(fmt.Sprint(name, " interrupted: ", context.Cause(ctx), " after ", time.Since(began).Round(time.Second)))
			return ctx.Err()
		}
	})
}

func TestOnReleaseTheContextEndsAfterGrace(t *testing.T) {
	var n notes
	cluster(t, 2, busy(&n, time.Hour, true), &runnel.ProcessorOptions{Grace: 3 * time.Second}, func(c *runneltest.Cluster, send func(...int)) {
		ready(c, "a")
		send(1, 2, 3, 4, 5, 6, 7, 8) // something for either partition
		c.Wait(func() bool { return len(n.all()) == 2 })
		c.Sleep(10 * time.Second)
		c.Start("b")
		c.Wait(func() bool { return n.has("b begins") })
		if !n.has("a interrupted: " + runnel.ErrReleased.Error() + " after 13s") {
			t.Errorf("%q", n.all())
		}
	})
}

func TestOnReleaseWhatEndsWithinGraceIsAckedAndNotRepeated(t *testing.T) {
	var n notes
	cluster(t, 1, busy(&n, 2*time.Second, true), &runnel.ProcessorOptions{Grace: 3 * time.Second}, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
		ready(c, "b")
		c.Sleep(10 * time.Second)
	})
	if got := strings.Join(n.all(), ", "); got != "a begins, a ends" {
		t.Errorf("%s", got)
	}
}

// A function that does not return keeps its partition, and the lock is refreshed
// for as long as it runs.
func TestOnReleaseAFunctionThatStaysKeepsItsLock(t *testing.T) {
	t.Parallel()
	var n notes
	opts := &runnel.ProcessorOptions{Grace: time.Second, Lease: 2 * time.Second}
	cluster(t, 2, busy(&n, time.Minute, false), opts, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1, 2, 3, 4, 5, 6, 7, 8)
		c.Wait(func() bool { return len(n.all()) == 2 })
		began := time.Now()
		b := c.Start("b")
		c.Wait(func() bool { return n.has("b begins") })
		if d := time.Since(began); d < 50*time.Second || d > 62*time.Second {
			t.Errorf("b began after %v, want when a's function had returned, after 60 s", d)
		}
		if !n.has("a ends") {
			t.Errorf("b began before a ended: %q", n.all())
		}
		a.Kill()
		b.Kill()
	})
}

func TestOnShutdownTheContextEndsAfterGrace(t *testing.T) {
	var n notes
	cluster(t, 1, busy(&n, time.Hour, true), &runnel.ProcessorOptions{Grace: 3 * time.Second}, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		began := time.Now()
		if err := a.Stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if d := time.Since(began); d < 3*time.Second || d > 4*time.Second {
			t.Errorf("stopped after %v", d)
		}
	})
	if !n.has("a interrupted: " + runnel.ErrShutdown.Error() + " after 3s") {
		t.Errorf("%q", n.all())
	}
}

// At shutdown the log says at once whom the worker waits for, and does not call partitions
// released that are not.
func TestOnShutdownTheLogTellsWhatItWaitsFor(t *testing.T) {
	var n notes
	var log redistest.Log
	logged(t, &log, busy(&n, time.Minute, false), &runnel.ProcessorOptions{Grace: 3 * time.Second}, func(c *runneltest.Cluster, w *runneltest.Worker, send func(...int)) {
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			_ = w.Stop() // its error is for TestOnShutdownRunNamesPartitionsWhoseFunctionStays
		}()
		c.Sleep(time.Second)
		const waits = `level=INFO msg="waiting for functions" .*partitions=0 after=\S+ grace=3s`
		if !regexp.MustCompile(waits).MatchString(log.String()) {
			t.Errorf("no %s in\n%s", waits, log.String())
		}
		<-stopped
		if !strings.Contains(log.String(), "partitions abandoned") || strings.Contains(log.String(), `msg="partitions released"`) {
			t.Errorf("the log at the end:\n%s", log.String())
		}
	})
}

func TestANegativeGraceIsNone(t *testing.T) {
	var n notes
	cluster(t, 1, busy(&n, time.Hour, true), &runnel.ProcessorOptions{Grace: -1}, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		if err := a.Stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if !n.has("a interrupted: " + runnel.ErrShutdown.Error() + " after 0s") {
		t.Errorf("%q", n.all())
	}
}

func TestOnShutdownRunNamesPartitionsWhoseFunctionStays(t *testing.T) {
	var n notes
	cluster(t, 1, busy(&n, time.Minute, false), &runnel.ProcessorOptions{Grace: 3 * time.Second}, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		began := time.Now()
		err := a.Stop()
		if d := time.Since(began); d < 4*time.Second || d > 5*time.Second {
			t.Errorf("Run returned after %v, want Grace and a second more", d)
		}
		for _, part := range []string{"stream items", "processor p", "partitions 0:"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %s", err, part)
			}
		}
		// Its event is not acked, and no worker gets it before the lock has expired.
		b := c.Start("b")
		c.Wait(func() bool { return n.has("b begins") })
		if d := time.Since(began); d < 10*time.Second {
			t.Errorf("another worker began it after %v, while it may still run", d)
		}
		b.Kill()
	})
}

func TestOnLossTheContextEndsBeforeTheLockExpires(t *testing.T) {
	var n notes
	opts := &runnel.ProcessorOptions{Grace: time.Minute, Lease: 5 * time.Second}
	cluster(t, 1, busy(&n, time.Minute, true), opts, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1)
		c.Wait(func() bool { return n.has("a begins") })
		c.Start("b")
		c.Sleep(3 * time.Second)
		a.Isolate(20 * time.Second)
		began := time.Now()
		lost := func() bool {
			return strings.Contains(strings.Join(n.all(), " "), "a interrupted: "+runnel.ErrLost.Error())
		}
		c.Wait(lost)
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("noticed after %v, when the lock had expired", d)
		}
		if n.has("b begins") {
			t.Error("two owners at once")
		}
		c.Wait(func() bool { return n.has("b begins") })
		if d := time.Since(began); d > 6*time.Second {
			t.Errorf("taken over after %v, want expiry and a second at most", d)
		}
	})
}

// slowly is a codec of records of 5 MiB, which are decoded one at a time, in half a minute each.
type slowly struct{}

func (slowly) Name() string { return "slowly" }

func (slowly) Encode(record any) ([]byte, error) {
	data := make([]byte, 5<<20)
	data[0] = byte(record.(item).N)
	return data, nil
}

func (slowly) Decode(data []byte, record any) error {
	time.Sleep(30 * time.Second)
	record.(*item).N = int(data[0])
	return nil
}

// What waits for its turn to be decoded does not hold its partition: only the record being decoded does.
func TestOnReleaseRecordsWaitNoMoreForTheirTurn(t *testing.T) {
	t.Parallel()
	var n notes
	stream := &runnel.StreamOptions{Partitions: 4, Codec: slowly{}}
	simulate(t, nil, stream, busy(&n, time.Second, true), &runnel.ProcessorOptions{Grace: 3 * time.Second}, func(c *simulated) {
		a := ready(c.Cluster, "a")
		for i := range 16 {
			c.send(i)
		}
		c.Sleep(2 * time.Second)
		err := a.Stop()
		if err == nil || !regexp.MustCompile(`partitions? \d: the function did not return`).MatchString(err.Error()) {
			t.Errorf("Run: %v, want one partition whose function did not return", err)
		}
		c.Sleep(time.Minute)
	})
}
