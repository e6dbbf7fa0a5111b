package conformance

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

const hour = time.Hour

// A ghost is an owner of one partition that the test steps by hand.
type ghost struct {
	r      *rig
	place  store.Partition
	tenure store.Claim
	group  string
	epoch  int64
	reader *redisconn.Reader
}

// ghost takes over a partition whose lock is free.
func (r *rig) ghost(partition int, expiry time.Duration) *ghost {
	r.t.Helper()
	ctx := context.Background()
	id := store.NewExecutorID()
	g := &ghost{
		r: r, place: r.place(partition), tenure: store.Claim{Executor: id, Number: 1},
		group: store.GroupName(r.processor, id), reader: r.client.NewReader(),
	}
	if byPosition {
		g.tenure.Reach = 10
	}
	r.t.Cleanup(func() { g.reader.Close() })
	if err := r.client.Lock(ctx, g.place, g.tenure, expiry, 0); err != nil {
		r.t.Fatal(err)
	}
	pos, err := r.client.Takeover(ctx, g.place, g.tenure, "", 0)
	if err != nil {
		r.t.Fatal(err)
	}
	g.epoch = pos.Epoch
	return g
}

func (g *ghost) read(count int) []redisconn.Entry {
	g.r.t.Helper()
	chunks, err := g.readNew(count, time.Second)
	if err != nil || len(chunks) != 1 {
		g.r.t.Fatalf("read of a ghost: %v, %v", chunks, err)
	}
	return chunks[0].Entries
}

// readNew reads as owners do.
func (g *ghost) readNew(count int, wait time.Duration) ([]redisconn.Chunk, error) {
	if byPosition {
		return g.reader.Follow(context.Background(), []string{g.place.Log}, []string{"0-0"}, count, wait)
	}
	return g.reader.Read(context.Background(), g.group, "runnel", []string{g.place.Log}, count, wait)
}

// done says that the ghost is done with what it has read.
func (g *ghost) done(ids []string) error {
	if byPosition {
		return g.r.client.Commit(context.Background(), []store.Commit{
			{Partition: g.place, Claim: g.tenure, Number: 1, Committed: ids[len(ids)-1], Read: int64(len(ids))},
		})[0]
	}
	return g.r.client.Ack(context.Background(), g.group, []store.Ack{{Place: g.place, IDs: ids}})[0]
}

// onLock returns a rule for the n-th request about a partition's lock. Scripts share a command
// name, so their arguments tell them apart.
func (r *rig) onLock(p *faultproxy.Proxy, n, partition int) *faultproxy.Rule {
	return p.On("EVALSHA", n).Containing(line(r.lock(partition)), line("33"))
}

func (r *rig) onTakeover(p *faultproxy.Proxy, n, partition int) *faultproxy.Rule {
	return p.On("EVALSHA", n).Containing(line(r.lock(partition)), line(r.processor))
}

func (r *rig) onRefresh(p *faultproxy.Proxy, n int) *faultproxy.Rule {
	return p.On("EVALSHA", n).Containing(r.processor+"@", line(r.lock(0)))
}

func (r *rig) onUnlock(p *faultproxy.Proxy, n, partition int) *faultproxy.Rule {
	return p.On("EVALSHA", n).Containing("*9\r\n$7\r\nevalsha\r\n", line("2"), line(r.lock(partition)), line(r.own(partition)))
}

func (r *rig) onSwap(p *faultproxy.Proxy, n int) *faultproxy.Rule {
	return p.On("EVALSHA", n).Containing("*6\r\n$7\r\nevalsha\r\n", line(r.membership()))
}

func line(s string) string { return "\r\n" + s + "\r\n" }

// warm loads every script on the server, so that a worker's first EVALSHA succeeds.
func (r *rig) warm() {
	r.t.Helper()
	ctx := context.Background()
	other := r.client.Partition("warm", r.processor, 0)
	t := store.Claim{Executor: store.NewExecutorID(), Number: 1}
	if err := r.client.Lock(ctx, other, t, hour, 0); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.client.Takeover(ctx, other, t, "", 0); err != nil {
		r.t.Fatal(err)
	}
	renewal := store.LeaseRequest{Partition: other, Claim: t, Committed: "0-0"}
	if _, err := r.client.Refresh(ctx, store.Heartbeat{Key: "warm", Expiry: hour, Membership: "warm"}, []store.LeaseRequest{renewal}); err != nil {
		r.t.Fatal(err)
	}
	if err := r.client.Unlock(ctx, other, t); err != nil {
		r.t.Fatal(err)
	}
	record := []string{"data", "x"}
	if a := r.client.Append(ctx, []store.Append{{Log: other.Log, Records: [][]string{record, record}}}); a[0].Err != nil {
		r.t.Fatal(a[0].Err)
	}
	if _, err := r.client.Group("warm", r.processor).Swap(ctx, nil, []byte("x")); err != nil {
		r.t.Fatal(err)
	}
}
