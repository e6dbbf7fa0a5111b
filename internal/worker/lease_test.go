package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// A consumer that has seen the lease over has returned for good:
//
//  1. no refresh got through; the consumer asks for more and gets the end;
//  2. a late refresh is answered: the lease holds again;
//  3. the watcher finds nothing wrong, and no consumer processes the partition.
func TestALeaseSeenOverByTheConsumerIsOver(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.add(1)
		synctest.Wait()
		old := r.partition()
		lease := old.lease.end.Swap(monotime.Now() - 1)
		r.add(2)
		synctest.Wait()
		select {
		case <-old.life.finished:
		default:
			r.t.Fatal("the consumer goes on without a lease")
		}
		old.lease.end.Store(lease)
		if !old.life.isLost() {
			r.t.Error("the ownership goes on without a consumer")
		}
		time.Sleep(time.Minute)
		r.ready()
		r.add(3)
		synctest.Wait()
		r.wants("1 2 3")
		if lost := r.w.executors[0].count.LostPartitions.Load(); lost != 1 {
			r.t.Errorf("%d partitions lost, want 1", lost)
		}
	})
}

// The watcher and the consumer see at the same moment that the lease is over, as behind a SIGSTOP. Each goes on only when the
// function's context has ended.
func TestALeaseIsOverForTheFunctionFirst(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		p := r.partition()
		end, slow := p.cancel, make(chan struct{})
		p.cancel = func(cause error) {
			<-slow
			end(cause)
		}
		p.lease.end.Store(monotime.Now() - 1)
		go p.leaseValid()
		synctest.Wait()
		held := make(chan bool, 1)
		go func() { held <- p.source.Holds() || p.ctx.Err() == nil }()
		synctest.Wait()
		close(slow)
		if <-held {
			r.t.Error("the function's context goes on where nothing may be processed any more")
		}
		time.Sleep(time.Minute)
		r.ready()
	})
}

// An acker that has seen the lease end sends nothing more, and its acks are not marked again.
func TestALeaseSeenOverByTheAckerIsOver(t *testing.T) {
	expired := false
	inRig(t, func(r *rig, n int) {
		if n != 2 {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if expired {
			return
		}
		expired = true
		old := r.partition()
		lease := old.lease.end.Swap(monotime.Now() - 1)
		// As Ack does concurrently, with the acker running before the refresh.
		old.buffer.Done([]string{old.buffer.Owed().Taken})
		_ = r.x().acks.one.send(context.Background(), []*partition{old})
		old.lease.end.Store(lease)
		if !old.life.isLost() {
			r.t.Error("the ownership goes on with an ack that is never sent")
		}
	}, func(r *rig) {
		r.add(1)
		synctest.Wait()
		r.add(2, 3)
		time.Sleep(time.Minute)
		r.ready()
		r.wants("1 2 2 3")
	})
}

// An ownership may be marked without an ack to send. The acker may then look at it after its
// release, when no heartbeat refreshes its lease.
func TestALeaseThatEndsAfterTheReleaseIsNotLost(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.add(1)
		synctest.Wait()
		m, old := r.x(), r.partition()
		if err := errors.Join(m.Release(r.t.Context(), 0), m.Acquire(r.t.Context(), 0, 0)); err != nil {
			r.t.Fatal(err)
		}
		old.lease.end.Store(monotime.Now() - 1)
		m.acks.mark(old)
		time.Sleep(time.Minute)
		if lost := r.w.executors[0].count.LostPartitions.Load(); lost != 0 || r.x() != m {
			r.t.Errorf("%d partitions lost, rejoined: %v", lost, r.x() != m)
		}
		r.add(2)
		synctest.Wait()
		r.wants("1 2")
	})
}
