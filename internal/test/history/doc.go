// Package history writes down what producers and workers did, and judges from it whether order was kept, nothing was
// lost, and every partition had one owner at a time. Counting cannot tell; a history can.
//
// Every process writes its own file (Open), a simulation in fake time one log in memory (Memory). A record is on disk
// when the call returns, in one write: kill -9 loses nothing that was written. Times of different processes of one
// machine are comparable.
//
// # What is recorded
//
//	sent      the append was accepted: stream, partition, entry ID, key, seq. Written when the reply has come.
//	appended  the entry was found in its partition afterwards, whatever its sender knows.
//	unknown   the outcome of the append is unknown: key, seq.
//	refused   the append was refused, so it is certainly not in: key, seq.
//	begin     an iteration begins: worker, executor, epoch, processor, partition, the batch's IDs, keys, seqs.
//	end       it ended. Completed: these events are to be acked. Failed: they are not.
//	dropped   so many events made room for others at a place, which may not have completed them.
//	held      nothing can begin any more: stream, processor, partition (below 0: all of them). Written when that is certain.
//	freed     it may, again. Written before it is allowed.
//	dead      the event was found among the dead letters of the processor, at whatever time.
//	delayed   the event was accepted for later: stream, partition, key, seq, and when it is due at the earliest.
//	recalled  it was taken back before it was due. Failed: perhaps.
//	owned     the server was asked who owns a place: stream, processor, partition, epoch, executor, and how many
//	          owners are accepted (the consumer groups of the processor).
//	rest      everything at a place was done, up to this entry, and its owner had this epoch.
//	wiped     everything in a partition was taken away at once, up to this entry. Written behind a fault that is a wipe.
//	fault     something was done to a worker, or to all if the worker is empty. Written before it is done.
//	note      free text.
//
// A worker's name stands for one process: a restarted worker has another. The seqs of a key ascend in the order in
// which they were sent; two producers share no key.
//
// # The rules of Check
//
// A place is a stream, a processor and a partition. An iteration completes an event if it ends and did not fail.
//
//   - loss: every event sent or appended is completed, or a dead letter, at every processor. Events sent before a flush are excused, and
//     as many as were dropped there; and exactly those that a wipe took. An event delayed is appended, unless it was
//     recalled, or a wipe of its partition came first.
//   - order, where events are attempted again (Options.Lanes): no event begins while one before it in its lane has begun
//     and is neither completed nor a dead letter. The next two rules hold for each lane.
//   - order: the first completions at a place ascend in entry ID, compared as two 64-bit numbers, and so do the IDs
//     within a batch.
//   - fifo: the first completions of a key at a place ascend in seq. A seq whose outcome was unknown may come later
//     than larger ones, for its sender may have sent it again.
//   - owner: an epoch belongs to one worker and executor. Once an iteration began under an epoch, none begins at that
//     place under a smaller one. Within an epoch iterations neither overlap nor go back, except, with Options.Retries,
//     to an event not yet completed. If the handover was clean, the old owner's last iteration ended before the new
//     owner's first began; a worker that was stopped may finish the one it was in, though it
//     had not yet written that it began. An owner that had read what a wipe
//     took may begin it under its epoch still, for 5 s: its lock is gone, too.
//   - owner, by the server: one owner is accepted at a time, an epoch is given to one executor, and never falls.
//   - repeat: an event is completed twice at a place only under different epochs, and only if the smaller one ended
//     uncleanly before the second completion.
//     Nothing begins that was done when its place was at rest.
//     No event is a dead letter twice, or completed and a dead letter, unless its worker suffered right then.
//   - resend: a key and seq has more than one entry ID only if its outcome was unknown, or a wipe lies between them.
//   - refused: a refused key and seq, not sent again, is never completed.
//   - hold: no iteration begins at a place that is held.
//   - early: no entry is older than the time at which it was due, and none is of an event that was recalled.
//   - once: of what Atomic processors have left (Options.Rest), each event has counted once in rows and outputs; see package exact.
//   - attempts: the attempts of an event ascend, each is begun once unless its worker suffered, and none is beyond
//     Options.Attempts.
//   - record: records fit together. An end has its begin, an entry ID has one key and seq.
//
// A handover is unclean if its old owner suffered kill, stop, cut, silence (connections that carry nothing, or too
// late), down (of its server), flush, wipe, failover, split or lost (it noticed itself that it was no longer the owner) after it was last heard of at
// that place, or up to 5 s before; term, cont, join, slow, scripts, clock and full (of memory) are
// clean.
//
// A failover lasts from its record to that of settled with the same text, if there is one: what a server said in that
// time, or right before it, need not have been replicated. (If settled failed, no other server has taken its place,
// and nothing is excused so.) So an entry of which no sender was told may vanish, unless it is found afterwards, and
// be sent, or moved to its partition, again; an accepted owner under which nothing had begun may be undone, and so may
// a hold, a recall, a dead letter, and the count of attempts. What a sender was told, and an owner under which
// something began, stay: where that is judged replicas have to confirm it first. Split is a failover in which the old
// server goes on: with Options.Some what senders were told meanwhile may be gone, too, and who owned a place there may begin what it has, beside the next owner, until soon after it is settled.
package history
