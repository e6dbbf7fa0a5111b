package store

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
)

// Random histories of owners under DropOldest: in the end those events are lost that no owner has passed. Where events are deleted by
// hand the server forgets the number of a group, and owners by group may miss some: no history has both.
func TestLostIsTrue(t *testing.T) {
	e := realEnv(t)
	for seed := range 60 {
		for _, k := range []lostKind{{}, {deletions: true}, {byGroup: true}} {
			e.must(e.raw.FlushAll(e.ctx()).Err())
			newLostHistory(t, e, uint64(seed), k).play()
		}
	}
}

type lostKind struct{ deletions, byGroup bool }

// A lostHistory is an owner with its position, which others follow.
type lostHistory struct {
	*testing.T
	*env
	*rand.Rand
	lostKind
	name string
	p    Partition
	log  string

	me        Claim
	held      []string // was read, and not committed
	at        string   // up to where was read
	committed string
	counted   string
	count     int64 // read up to at, -1 for unknown
	read      int64 // up to committed
	commits   int64
	sent      int
	passed    map[string]bool

	late    LeaseRequest // by position: is on its way, and may overtake nothing
	suspect bool
}

func newLostHistory(t *testing.T, e *env, seed uint64, k lostKind) *lostHistory {
	h := &lostHistory{T: t, env: e, Rand: rand.New(rand.NewPCG(seed, 0)), lostKind: k, name: fmt.Sprint("orders", seed), passed: map[string]bool{}}
	_, err := e.EnsureMeta(e.ctx(), h.name, Meta{Partitions: 1, MaxLen: 12, Overflow: OverflowDropOldest, Processors: []string{"printer"}})
	e.must(err)
	h.p = e.Partition(h.name, "printer", 0)
	return h
}

func (h *lostHistory) note(format string, args ...any) { h.log += fmt.Sprintf(format, args...) + "\n" }

func (h *lostHistory) takeover() {
	number := h.me.Number + 1
	h.me = Claim{Executor: []string{alice, bob}[number%2], Number: number, Expiry: 10 * time.Second, Reach: 100}
	if h.byGroup && h.IntN(2) == 0 {
		h.me.Reach = 0
	}
	h.raw.Del(h.ctx(), h.p.Lock)
	h.must(h.Lock(h.ctx(), h.p, h.me, 10*time.Second, 10*time.Second))
	to, err := h.Takeover(h.ctx(), h.p, h.me, "", 0)
	h.must(err)
	h.at, h.committed, h.counted, h.held, h.commits = to.Committed, to.Committed, "", nil, 0
	h.late, h.suspect = LeaseRequest{}, false
	h.count = max(to.Read-to.Lost, -1)
	h.read = h.count
	h.note("takeover, reach %d: at %s, read %d, lost %d, missed %d", h.me.Reach, to.Committed, to.Read, to.Lost, to.Missed)
}

func (h *lostHistory) send(n int) {
	h.must(h.Append(h.ctx(), []Append{{Stream: h.name, Log: h.p.Log, Records: records(h.sent, n)}})[0].Err)
	h.sent += n
	h.note("send %d", n)
}

func (h *lostHistory) reads(n int) {
	var found []string
	if h.suspect {
		h.must(h.CountLost(h.ctx(), h.me.Expiry, []LeaseRequest{h.request()}))
		h.suspect = false
		h.note("count, at %s: lost %s", h.at, h.lost(h.p))
	}
	if h.me.Reach == 0 {
		found = h.env.read(h.p, h.me.Executor, n)
	} else {
		found = ids(h.raw.XRangeN(h.ctx(), h.p.Log, "("+h.at, "+", int64(n)).Val())
	}
	for _, id := range found {
		h.held, h.at = append(h.held, id), id
		if h.count >= 0 {
			h.count++
		}
	}
	h.note("read %d, to %s", len(found), h.at)
}

func (h *lostHistory) commit(n int) {
	if n == 0 {
		return
	}
	upTo, read := h.held[n-1], int64(-1)
	if h.read >= 0 {
		read = h.read + int64(n)
	}
	if h.me.Reach == 0 {
		h.must(h.Ack(h.ctx(), GroupName("printer", h.me.Executor), []Ack{{Place: h.p, IDs: h.held[:n]}})[0])
	} else if err := h.Commit(h.ctx(), []Commit{{Partition: h.p, Claim: h.me, Number: h.commits + 1, Committed: upTo, Read: read}})[0]; err != nil {
		h.note("commit %s: %v", upTo, err)
		h.takeover()
		return
	}
	for _, id := range h.held[:n] {
		h.passed[id] = true
	}
	h.commits, h.committed, h.read, h.held = h.commits+1, upTo, read, h.held[n:]
	h.note("commit %s, read %d", upTo, read)
}

func (h *lostHistory) request() LeaseRequest {
	return LeaseRequest{Partition: h.p, Claim: h.me, Committed: h.committed, Read: h.read, At: h.at, Count: h.count}
}

// refresh executes a refresh that was made now, or by position earlier, too.
func (h *lostHistory) refresh() {
	r := h.request()
	if late := h.IntN(2) == 0 && h.me.Reach > 0; late && h.late.At != "" {
		r, h.late = h.late, r
	} else if late {
		h.late = r
		return
	}
	if r.At == h.counted {
		r.At = ""
	}
	got := h.env.refresh(r).Leases[0]
	if got.Counted {
		h.counted = r.At
		if got.Count >= 0 && r.At == h.at {
			h.count = got.Count
		}
	}
	h.suspect = got.Suspect
	h.note("refresh at %q: lost %d, counted %v, suspect %v, count %d", r.At, got.Lost, got.Counted, got.Suspect, got.Count)
}

func (h *lostHistory) release() {
	req := LeaseRequest{Partition: h.p, Claim: h.me, Committed: h.committed, Read: h.read}
	if h.me.Reach > 0 {
		req.Begun = h.committed
	}
	_, err := h.Release(h.ctx(), req)
	h.must(err)
	h.note("release")
}

func (h *lostHistory) play() {
	h.takeover()
	for range 60 {
		switch k := h.IntN(13); {
		case k < 4:
			h.send(1 + h.IntN(6))
		case k < 7:
			h.reads(1 + h.IntN(8))
		case k < 9:
			h.commit(h.IntN(len(h.held) + 1))
		case k == 9:
			h.refresh()
		case k == 10 && h.IntN(2) == 0:
			h.takeover()
		case k == 11 && h.IntN(2) == 0:
			h.release()
			if h.IntN(2) == 0 {
				h.send(1 + h.IntN(12))
			}
			h.takeover()
		case k == 12 && h.deletions:
			if all := h.raw.XRange(h.ctx(), h.p.Log, "-", "+").Val(); len(all) > 0 {
				id := all[h.IntN(len(all))].ID
				h.raw.XDel(h.ctx(), h.p.Log, id)
				h.note("XDEL %s", id)
			}
		}
	}
	for range 9 {
		h.refresh()
		h.reads(100)
		h.commit(len(h.held))
		h.refresh()
	}
	h.judge()
}

func (h *lostHistory) judge() {
	lost, _ := strconv.Atoi(h.lost(h.p))
	gone, _ := strconv.Atoi(h.raw.HGet(h.ctx(), h.p.Own, "gone").Val())
	if end := h.raw.XRevRangeN(h.ctx(), h.p.Log, "+", "-", 1).Val(); len(end) > 0 && entryid.Compare(h.committed, end[0].ID) < 0 {
		h.Errorf("%s %+v: something is left\n%s", h.name, h.lostKind, h.log)
	}
	if want := h.sent - len(h.passed); lost+gone != want {
		h.Errorf("%s %+v: lost %d and gone %d, want %d\n%s", h.name, h.lostKind, lost, gone, want, h.log)
	}
}

// What DropOldest removes unread is counted, also where it is not known how many entries lie before the position.
func TestDroppedEventsAreCountedWhereNumbersAreUnknown(t *testing.T) {
	for _, me := range []Claim{tenure(alice, 1), byPosition(alice)} {
		e := realEnv(t)
		h := newLostHistory(t, e, 0, lostKind{})
		h.send(10)
		e.own(h.p, tenure(carol, 1))
		to := e.raw.XRange(e.ctx(), h.p.Log, "-", "+").Val()[4].ID
		try(e.Reset(e.ctx(), h.p, tenure(carol, 1), to)).must(t)
		e.must(e.Unlock(e.ctx(), h.p, tenure(carol, 1)))
		pos := e.own(h.p, me)
		equal(t, "read up to the position", pos.Read, -1)
		h.send(10) // those before the position go, and three more
		h.send(6)
		h.me, h.at, h.committed, h.count, h.read = me, pos.Committed, pos.Committed, -1, -1
		h.refresh()
		h.reads(100)
		equal(t, "read", len(h.held), 12)
		h.refresh()
		equal(t, "lost", e.lost(h.p), "9")
	}
}

// A takeover counts what was lost before a position also where events that are acked lie in front of it: of a group the server
// corrects the number, and nothing would tell of them any more.
func TestATakeoverCountsWhatWasLostBeforeThePosition(t *testing.T) {
	for _, scene := range []struct{ dropped, acked, want int }{{6, 4, 6}, {3, 6, 3}} {
		e := realEnv(t)
		h := newLostHistory(t, e, 0, lostKind{})
		h.me = byPosition(alice)
		e.own(h.p, h.me)
		h.at, h.committed = "0-0", "0-0"
		h.send(12)
		h.send(scene.dropped)
		h.reads(scene.acked)
		h.commit(scene.acked)
		e.must(e.Unlock(e.ctx(), h.p, h.me))
		pos := e.own(h.p, tenure(bob, 1))
		equal(t, "lost", int(pos.Lost), scene.want)
		equal(t, "read up to the position", int(pos.Read), scene.acked+scene.dropped)
	}
}

// What was parked, and is dropped from the partition before its position has passed it, is not lost.
func TestWhatIsParkedIsNotLost(t *testing.T) {
	for _, next := range []Claim{byPosition(bob), tenure(bob, 1)} {
		e := realEnv(t)
		h := newLostHistory(t, e, 0, lostKind{})
		e.own(h.p, byPosition(alice))
		h.send(12)
		e.park(h.p, alice, ids(e.raw.XRange(e.ctx(), h.p.Log, "-", "+").Val())[1:4]...) // behind one that is at work
		h.send(6)
		equal(t, "lost of six that were dropped", int(e.own(h.p, next).Lost), 3)
	}
}
