// Package delayqueue is a queue of entries that are not due before their time, in Redis:
// what delayed events stand on, and general enough for queues of entities and for
// schedules.
//
// An entry has an ID, a time in milliseconds since 1970, a version that each put
// raises, data, and attempts. Its life:
//
//	put ──► waits ──take──► runs ──done──► gone
//	          ▲               │
//	          ├──done later───┤  due again at another time
//	          └──recover──────┘  its taker died
//
// An entry that is put again while it runs waits and runs at once: it is not taken
// before its run is over, and done leaves it, for the version is another one than
// was taken. Redis' clock says what is due; nothing is taken early. Entries of one
// time are taken in the order of their IDs, which a queue that gives the IDs makes
// the order in which they were put.
//
// Each method is one script. Lib holds what the scripts are made of, for scripts
// of others that do more in the same step: delayed events are moved into their
// partition that way.
//
// No method repeats a call by itself. One whose reply was lost may have been
// executed: what a repetition then does stands in its comment.
package delayqueue
