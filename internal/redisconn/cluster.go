package redisconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/monotime"

	"github.com/redis/go-redis/v9"
)

const (
	// looksApart is the least time between two looks at the slots.
	looksApart = 200 * time.Millisecond
	// lookPatience is how long one node may take to answer.
	lookPatience = time.Second
)

// A cluster knows the nodes of a Redis Cluster and which of them serves each slot.
// It learns that from CLUSTER SLOTS and from redirections, as the specification of
// Redis Cluster wants it.
type cluster struct {
	seeds []string
	home  int // slot of the keys that belong to no partition
	open  func(addr string) *node
	slots [slotCount]atomic.Pointer[node] // nil: not known

	ctx  context.Context // ends with the client
	stop context.CancelFunc

	mu    sync.Mutex
	nodes map[string]*node

	looking sync.Mutex // held during a look
	looked  time.Time  // when the last one that found something ended, guarded by looking
	soon    atomic.Bool
}

// A node is one server of a cluster.
type node struct {
	addr    string
	rdb     *redis.Client // repeats nothing
	lasting *redis.Client // the same for commands that wait for replicas
}

func (n *node) close() error { return errors.Join(n.rdb.Close(), n.lasting.Close()) }

func newCluster(seeds []string, home int, open func(addr string) *node) *cluster {
	k := &cluster{seeds: seeds, home: home, open: open, nodes: map[string]*node{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// close closes the clients of all nodes.
func (k *cluster) close() error {
	k.stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, n := range k.nodes {
		if err := n.close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// node returns the node with an address.
func (k *cluster) node(addr string) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[addr]
	if n == nil {
		n = k.open(addr)
		if k.ctx.Err() != nil {
			n.close()
		}
		k.nodes[addr] = n
	}
	return n
}

// of returns the node that serves a slot, by the last look. If none is known, it asks the
// cluster.
func (k *cluster) of(ctx context.Context, slot int) (*node, error) {
	if n := k.slots[slot].Load(); n != nil {
		return n, nil
	}
	if err := k.look(ctx); err != nil {
		return nil, err
	}
	if n := k.slots[slot].Load(); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("no node of the cluster serves slot %d: %w", slot, errUnserved)
}

// known returns the node that serves a key, nil if that is not known yet.
func (k *cluster) known(key string) *node { return k.slots[Slot(key)].Load() }

// errUnserved is the error of a command that was not sent, as no node serves its slot.
var errUnserved = &dialError{errors.New("slot without a node")}

// masters returns the nodes that serve slots, by address.
func (k *cluster) masters(ctx context.Context) ([]*node, error) {
	if _, err := k.of(ctx, k.home); err != nil {
		return nil, err
	}
	var out []*node
	var last *node
	for i := range k.slots {
		if n := k.slots[i].Load(); n != nil && n != last {
			out, last = append(out, n), n
		}
	}
	slices.SortFunc(out, func(a, b *node) int { return strings.Compare(a.addr, b.addr) })
	return slices.Compact(out), nil
}

// serves reports whether a node serves any slot, by a new look.
func (k *cluster) serves(ctx context.Context, addr string) (bool, error) {
	if err := k.look(ctx); err != nil {
		return false, err
	}
	all, err := k.masters(ctx)
	return slices.ContainsFunc(all, func(n *node) bool { return n.addr == addr }), err
}

// lookSoon starts a look at the slots in the background, unless there was one just now.
func (k *cluster) lookSoon() {
	if k.ctx.Err() != nil || !k.soon.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer k.soon.Store(false)
		k.looking.Lock()
		left := looksApart - time.Since(k.looked)
		k.looking.Unlock()
		if left > 0 && !monotime.Sleep(k.ctx, left) {
			return
		}
		// After a failed look the next command looks again.
		_ = k.look(k.ctx)
	}()
}

// moved stores the node that serves a slot, as its predecessor reported.
func (k *cluster) moved(slot int, to *node) {
	k.slots[slot].Store(to)
	k.lookSoon()
}

// look asks the cluster which node serves which slot, unless there was a look just now.
func (k *cluster) look(ctx context.Context) error {
	k.looking.Lock()
	defer k.looking.Unlock()
	if ctx.Err() != nil {
		return groupcommit.Unsent(ctx)
	}
	if !k.looked.IsZero() && time.Since(k.looked) < looksApart {
		return nil
	}
	var errs []error
	for _, addr := range k.askable() {
		if ctx.Err() != nil {
			return groupcommit.Unsent(ctx)
		}
		found, err := k.ask(ctx, addr)
		if err == nil {
			k.learn(addr, found)
			k.looked = time.Now()
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, detach(err)))
	}
	return &dialError{fmt.Errorf("no cluster node returned its slots: %w", errors.Join(errs...))}
}

// askable returns the nodes that may know, in the order in which to ask: those that serve
// slots first.
func (k *cluster) askable() []string {
	serving := map[string]bool{}
	for i := range k.slots {
		if n := k.slots[i].Load(); n != nil {
			serving[n.addr] = true
		}
	}
	k.mu.Lock()
	var others []string
	for addr := range k.nodes {
		if !serving[addr] {
			others = append(others, addr)
		}
	}
	k.mu.Unlock()
	first := slices.Collect(maps.Keys(serving))
	for _, addrs := range [][]string{first, others} {
		rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	}
	out := append(first, others...)
	for _, addr := range k.seeds {
		if !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	return out
}

func (k *cluster) ask(ctx context.Context, addr string) ([]redis.ClusterSlot, error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	//lint:ignore SA1019 CLUSTER SHARDS tells of several ports, and not which of them this connection is for
	found, err := k.node(addr).rdb.ClusterSlots(ctx).Result()
	if err == nil && len(found) == 0 {
		err = errors.New("reply without slots")
	}
	return found, err
}

// learn applies the reply of a node. A slot that the reply does not mention stays with
// its node: a command to that node finds out more.
func (k *cluster) learn(from string, found []redis.ClusterSlot) {
	for _, f := range found {
		if len(f.Nodes) == 0 {
			continue
		}
		n := k.node(k.addrOf(f.Nodes[0].Addr, from)) // the master comes first
		for slot := max(f.Start, 0); slot <= f.End && slot < slotCount; slot++ {
			k.slots[slot].Store(n)
		}
	}
}

// addrOf returns the address of a node that another node reported. Without a host it is
// the host of the reporting node.
func (k *cluster) addrOf(addr, from string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" && host != "?" {
		return addr
	}
	if host, _, err = net.SplitHostPort(from); err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}
