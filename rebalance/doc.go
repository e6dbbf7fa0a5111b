// Package rebalance shares the partitions of a stream among the members of one processor. It
// shares them evenly, moves as few as possible, and does not stop those that stay.
//
// # Parts
//
//	assign.go       computes an assignment: a function of its arguments
//	group.go        the membership as a value; join and leave return a new one
//	steer.go        changes of the stored membership; pins and cordons of operators
//	member.go       the protocol of one member: a state machine without I/O
//	partitions.go   the part of the machine that follows an assignment
//	reaper.go       the part of the machine that looks at other members
//	coordinator.go  the API of a member: Run, and inputs during Run
//	run.go          carries out the actions of the machine
//	store.go        the interfaces to storage and to the owner of partitions
//	testdata/       interleavings, played and checked; read them as examples
//
// # Rules
//
//   - The stored membership is the truth, whatever its generation number. A member changes
//     it under the admin lock, by a write that compares the whole old value.
//   - A change is announced after it was written. Messages are hints: each member also reads
//     the membership with its heartbeat.
//   - The value that a heartbeat has read may be older than the one followed. So a member does
//     not follow it, but loads the membership again when it differs. The same holds for the
//     result of a removal, if another value was loaded meanwhile.
//   - A member looks at the heartbeats of the next three members in the order of IDs, with each
//     heartbeat of its own, and when one of the three should end. If one has ended, the member
//     looks at all others before it removes any: the members of a machine die together. So the
//     cost of a member does not grow with their number.
//   - An assignment is a wish, a lock decides. A partition changes hands when its old owner has
//     released it. The new owner tries until it succeeds, or until a newer membership takes the
//     partition away.
//   - Releases never wait for acquisitions.
//
// # A member
//
//	          delay, join              absent from the membership
//	joining ───────────────► following ───────────────────────────┐
//	   │                         │                                ▼
//	   │ stop, never tried       │ stop                         ending ──► ended
//	   ▼                         ▼              left, or 3 s      ▲     all released
//	 ended                    leaving ────────────────────────────┘
//
// A member that is stopped during its join leaves when the join has ended, since the write may
// have happened whatever the answer was.
//
// # A partition of a member
//
//	assigned           fewer than 256 tries      obtained         taken away
//	─────────► queued ───────────────────► trying ───────► owned ────────────► releasing
//	             ▲                           │               │                     │
//	             │ its time has come,        │ held, error   │ lost                ├─► gone
//	             │ or a "released" message   ▼               │                     │
//	             ├─────────────────────── waiting ◄──────────┤ owned under 2 s     │
//	             ├───────────────────────────────────────────┘ else                │
//	             └─────────────────────────────────────────────────────────────────┘ assigned again
//
// A partition that is taken away while queued or waiting is gone at once. A try is cancelled, and
// its result awaited: a lock that it obtained is released.
//
// # What may fail
//
//	what fails                              what happens
//	a call of storage                       it is retried after 100 ms to 2 s, without limit
//	a control message is lost               the next heartbeat finds the change, within a third of the expiry
//	a "released" message is lost            the lock is tried every 50 ms to 1 s (at most expiry/4)
//	a swap is lost to another member        it is retried from the value stored then
//	a swap of unknown outcome               it is retried; the value tells whether it was written
//	a member dies                           its heartbeat ends; another member removes it, and its
//	                                        partitions are assigned; its locks expire
//	a living member is found dead           it is absent: it releases all, and Run returns ErrAbsent
//	the membership is deleted               all members are absent
//	the membership is set back              its members follow it; all others are absent
//	the membership cannot be read           owned partitions stay owned; executors cannot join until
//	                                        the key is deleted; State and the log name the key
//	a partition is lost without release     it is acquired again, at once if it was owned for 2 s
//	others keep changing the membership     a join or removal waits its turn, and warns after busyTries
//	                                        turns in vain. A leave gives up after 3 s: Remove takes
//	                                        the member out when its heartbeat is gone, with all
//	                                        others that have ended by then
//	storage is away at shutdown             the leave gives up after 3 s, the releases run, and the
//	                                        other members find the member dead
package rebalance
