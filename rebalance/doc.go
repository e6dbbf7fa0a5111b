// Package rebalance shares the partitions of a stream among the members of one
// processor: evenly, moving as few as possible, and without stopping those
// that stay.
//
// # Parts
//
//	assign.go       who gets what: a function of its arguments
//	group.go        the membership as a value; join and leave make a new one
//	member.go       the protocol of one member: a state machine without I/O
//	partitions.go   its part that follows an assignment, partition by partition
//	reaper.go       its part that looks after the other members
//	coordinator.go  what a caller sees: Run and what it is told meanwhile
//	run.go          carries out what the machine decides; the only file that does I/O
//	store.go        what is needed of storage, and of who owns partitions
//	testdata/       interleavings, played and checked; read them as examples
//
// # Rules
//
//   - The stored membership is the truth, whatever its generation number. It is
//     changed under the admin lock, by a write that compares the whole old value.
//   - A change is announced after it was written. Messages are hints: each
//     member also reads the membership with its heartbeat.
//   - What a heartbeat has read is not followed as it is: it may be older than
//     what is followed. It is loaded again when it differs. So is what a removal has
//     left, where something else was loaded meanwhile.
//   - A member looks at the heartbeats of the next three in the order of IDs, with each
//     heartbeat of its own and when one of them should end. Where one has ended it looks
//     at all before it removes anybody: members die together, as their machine does. So
//     what a member costs does not grow with their number.
//   - An assignment is a wish, a lock decides. A partition goes over when its old
//     owner has released it; the new one tries until it succeeds or a newer
//     membership takes the partition away.
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
// A member that is stopped while its join runs leaves when that has ended, for
// the write may have come about whatever the answer was.
//
// # A partition of a member
//
//	assigned           a slot of 16 is free      obtained         taken away
//	─────────► queued ───────────────────► trying ───────► owned ────────────► releasing
//	             ▲                           │               │                     │
//	             │ its time has come,        │ held, error   │ lost                ├─► gone
//	             │ or "released" was heard   ▼               │                     │
//	             ├─────────────────────── waiting ◄──────────┤ owned under 2 s     │
//	             ├───────────────────────────────────────────┘ else                │
//	             └─────────────────────────────────────────────────────────────────┘ assigned again
//
// Taken away while queued or waiting it is gone at once; while trying, the try
// is cancelled and its result awaited: what was obtained is released.
//
// # What may fail
//
//	what fails                              what happens
//	a call of storage                       again, 100 ms to 2 s later, for as long as it takes
//	a control message is lost               found with the next heartbeat, a third of the expiry later
//	a "released" message is lost            the lock is tried every 50 ms to 1 s (at most expiry/4)
//	a swap is lost to another member        again, from what is stored then
//	a swap of unknown outcome               again; the value reports whether it came through
//	a member dies                           its heartbeat ends, another one removes it and its partitions
//	                                        are assigned; their locks expire by themselves
//	a member is found dead but lives        it is absent: releases all, Run returns ErrAbsent
//	the membership is deleted               all are absent
//	it is set back to an older value        followed by those it names; the others are absent
//	it cannot be read                       what is owned stays; nobody can join until it is deleted;
//	                                        State and the log name it and say so
//	a partition is lost without release     acquired again, at once if it was owned for 2 s
//	others change it all the time           a member that joins or removes waits its turn, and warns
//	                                        after five turns in vain. One that leaves gives up after
//	                                        3 s, and Remove takes it out when its heartbeat is gone,
//	                                        with all others that have ended by then
//	storage is away at shutdown             the leave is given up after 3 s, the releases run, the
//	                                        others find the member dead
package rebalance
