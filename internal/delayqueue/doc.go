// Package delayqueue is a queue in Redis of entries with due times, the base of delayed events.
//
// An entry has an ID, a time in milliseconds since 1970, a version that each put raises, and data.
// Due times are by Redis' clock; no entry is taken early. Entries with the same time are taken in
// the order of their IDs, which the queue assigns, and so in the order of their puts.
//
// Each method is one script. Lib has the functions of the scripts, for others that do more in the
// same step: delayed events are put, and moved into their partition, that way.
//
// No method repeats a call by itself. A call whose reply was lost may have been executed;
// the method's comment says what a repetition does.
package delayqueue
