package model

import "math/bits"

const (
	executors = 3
	maxGroups = 3 // that are there at once; more only with a rule off
	maxLate   = 2 // requests whose callers have given up
	held      = 4 // entries that a buffer holds at most
)

// A set is one of entries: entry n is bit n-1.
type set uint8

func only(e uint8) set         { return 1 << (e - 1) }
func upTo(e uint8) set         { return 1<<e - 1 }
func (s set) has(e uint8) bool { return s>>(e-1)&1 == 1 }
func (s set) lowest() uint8    { return uint8(bits.TrailingZeros8(uint8(s)))%8 + 1 } // of a set that is not empty
func (s set) highest() uint8   { return uint8(bits.Len8(uint8(s))) }

// A tenure names an ownership as its lock's value does: executor, the number of the
// executor's ID, the number of the tenure under that ID. Zero is that of no executor. Numbers
// that nothing refers to any more are used again, so that there are few of them.
type tenure uint8

func tenureOf(slot, id, number uint8) tenure { return tenure(1<<7 | slot<<5 | id<<3 | number) }
func (t tenure) slot() uint8                 { return uint8(t) >> 5 & 3 }
func (t tenure) id() uint8                   { return uint8(t) >> 3 & 3 }
func (t tenure) number() uint8               { return uint8(t) & 7 }
func (t tenure) executor() uint8             { return uint8(t) >> 3 } // slot and ID: what a group is named by

// A group is a consumer group. Its name has the executor's ID only.
type group struct {
	of      tenure // that made it; 0: there is no group
	last    uint8  // delivered
	pending set
}

// floor is the entry up to which everything is acked.
func (g group) floor() uint8 {
	if g.pending != 0 {
		return g.pending.lowest() - 1
	}
	return g.last
}

// A server is what Redis stores of one partition.
type server struct {
	lock, took tenure // the lock's value; the tenure in the ownership hash
	open       bool   // the tenure was not released
	floor      uint8  // in the ownership hash
	epoch      uint8  // in it: how many that were given since are larger
	commit     uint8  // in it: the number of the last commit of took
	log        set
	parked     set // are tried again, apart from the partition
	aside      set // in the ownership hash: what was taken out behind its floor
	groups     [maxGroups]group
}

// group returns the group of an executor ID, nil if there is none.
func (r *server) group(of tenure) *group {
	for i := range r.groups {
		if g := &r.groups[i]; g.of != 0 && g.of.executor() == of.executor() {
			return g
		}
	}
	return nil
}

// A verb is what a request does whose caller has given up.
type verb uint8

const (
	lateLock verb = iota + 1
	lateTakeover
	lateRead
	lateAck
	lateUnlock
	lateCommit
	latePark
	lateSettle
)

var verbs = [...]string{"", "lock", "takeover", "read", "ack", "unlock", "commit", "park", "settle"}

// A late is a request whose connection broke before it was executed: it may be
// executed at any later moment, or never.
type late struct {
	verb   verb
	of     tenure
	acks   set
	number uint8 // of a commit
	out    set   // by a commit: what was taken out of the partition up to its entry
}

// A phase is where an executor stands with the partition.
type phase uint8

const (
	idle     phase = iota // it may try for the lock
	taking                // it holds the lock and has sent the takeover
	owning                // it reads, runs, acks
	draining              // it was asked to release
	ending                // the tenure is lost and the executor ID ends
	retaking              // the tenure is lost, the lock is ours: it will own it anew
	down                  // its process is dead
)

// The flags of an executor.
const (
	leased     uint16 = 1 << iota // by its clock the lock is surely its own
	granted                       // what the takeover under way will grant is not over
	renewed                       // what the refresh under way will grant is not over
	claimed                       // the number of the tenure is that of a try of unknown outcome
	behind                        // the server may have given it entries that it does not hold
	killing                       // a read of unknown outcome is not ended yet
	stale                         // it has heard nothing of the server since a failover
	mixed                         // it has lived through a failover or flush in this tenure
	elder                         // what it waits for of a refresh was executed before a failover
	byPosition                    // it reads by position
	doubting                      // what it reads over may be another server, or one that went back
	lane                          // the entry that the function is at, or that moves, is a parked one
	unsure                        // it is connected anew, to a server that may have forgotten that parked entries are done
)

// A request that an executor waits for.
type request uint8

const (
	none      request = iota
	sent              // not executed
	done              // executed, as asked
	refused           // executed: FENCED, NOGROUP, a short count
	notOurs           // a refresh: the lock is not ours
	strayed           // a refresh: it asks for the pending entries up to arg, which are acked again
	straying          // a refresh: it acks the entries of arg again
	forgotten         // a commit: BEHIND
)

// An executor is one of the processor's, with what it believes of the partition.
type executor struct {
	phase      phase
	id, number uint8 // of its tenure, present or next
	flags      uint16
	bereft     bool        // the lock has been gone since the takeover
	retaken    bool        // the partition is to be taken over again: the tenure takes nothing more in
	sure       set         // was acked in this tenure, as a reply said
	position   uint8       // the last entry that it holds
	current    uint8       // the entry that the function is at
	begun      uint8       // the largest that it began in this tenure
	buffer     [held]uint8 // what waits, in its order
	done       set         // and not with the acker
	top, floor uint8       // the largest that was confirmed; up to where everything is
	epoch      uint8       // the largest seen: how many that were given since are larger

	read, ack, take, refresh request
	history                  bool // the read is of our own history
	got                      set  // what the read brings
	acked                    set  // what the ack names; by position, also one of unknown outcome
	ackOf                    tenure
	arg                      uint8 // of the refresh: the lowest pending entry, up to where strays are, or these; by position, see refresh
	gained, given            uint8 // by the takeover: floor and epoch

	retries
}

// retries are what an executor has of entries that have failed. The function waits for a move.
type retries struct {
	move       request
	moved      uint8 // the entry that is parked, or settled
	kept, away set   // that are parked; that were taken out before, and may come again
	ran        set   // handled in this tenure
	owed       owed  // when the refresh was sent
	missing    uint8 // what a refresh did not find pending

	// By position.
	commits, nth uint8 // confirmed, of this tenure; the number of the one under way
	out, outs    set   // taken out and not committed; what the commit under way says of it
}

func (x *executor) is(flag uint16) bool { return x.flags&flag != 0 }
func (x *executor) set(flag uint16, to bool) {
	if x.flags &^= flag; to {
		x.flags |= flag
	}
}

func (x *executor) waiting() (n int) {
	for n < held && x.buffer[n] != 0 {
		n++
	}
	return n
}

func (x *executor) pop() uint8 {
	e := x.buffer[0]
	copy(x.buffer[:], x.buffer[1:])
	x.buffer[held-1] = 0
	return e
}

// A fault is something that no fair continuation contains. Each has its own bound.
type fault uint8

const (
	breaks   fault = iota // a connection breaks: the outcome of what is under way is unknown
	lapses                // a lease ends, for a pause, or a network that is cut
	crashes               // a process dies
	releases              // an executor is asked to give the partition up
	surprise              // an executor ID ends for a reason elsewhere
	slowness              // a refresh takes long
	destroys              // XGROUP DESTROY by hand
	fails                 // failover to an older state
	flushes               // FLUSHALL
	appends               // an entry is appended; no fault but bounded too
	faults
)

// bounds say how many of each fault may happen.
type bounds [faults]uint8

type ownState struct {
	server   server
	replica  server // what a failover would bring back
	replicas bool   // there is one
	aged     bool   // the clock went on since the last epoch was given
	handled  set    // by a function that was let run to its end
	again    set    // what may be handled again: an owner of it did not release cleanly
	settled  set    // what was parked and is done, as long as nothing was forgotten or destroyed
	late     [maxLate]late
	failed   bool   // a failover or a FLUSHALL has been
	byHand   bool   // a group was destroyed
	left     uint8  // faults that may still happen together
	each     bounds // and of each kind
	x        [executors]executor
}

func (s *ownState) tenure(i int) tenure {
	return tenureOf(uint8(i), s.x[i].id, s.x[i].number)
}
