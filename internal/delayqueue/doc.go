// Package delayqueue is a queue of entries that are not due before their time, in Redis:
// what delayed events stand on.
//
// An entry has an ID, a time in milliseconds since 1970, a version that each put
// raises, and data. Redis' clock says what is due; nothing is taken early. Entries of
// one time are taken in the order of their IDs, which the queue gives, and so in the
// order in which they were put.
//
// Each method is one script. Lib holds what the scripts are made of, for scripts
// of others that do more in the same step: delayed events are put, and moved into
// their partition, that way.
//
// No method repeats a call by itself. One whose reply was lost may have been
// executed: what a repetition then does stands in its comment.
package delayqueue
