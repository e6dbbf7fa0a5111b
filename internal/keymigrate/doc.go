// Package keymigrate gives all keys of a stopped app the names of another key layout,
// and takes them to another server if it is to. Nothing is lost on the way, whenever
// it is interrupted: run again it goes on.
//
// A producer that did not notice, a worker that starts, or a program in another language may
// work on the old names during or after the move. Clocks cannot exclude that, so the server
// does:
//
//  1. The app is marked (store.Mark), under both names, and the metadata of its
//     streams say so. From here on every worker and producer that looks is refused.
//  2. A script per partition renames its keys, all or none, unless a lock of the
//     partition is held, and leaves a fence in the place of the log: a string, on which a
//     send, a read and a takeover fail. So a late send was either before, and went
//     along, or fails, and its sender knows. The same is done with memberships and
//     with what belongs to the app.
//  3. What the metadata do not name is found by SCAN: the IDs of what was sent once,
//     and dead letters of processors that were removed.
//  4. With another server as the target, everything is now copied by DUMP and RESTORE, and
//     compared. Nothing can change it meanwhile. A mark on the target, too, refuses every
//     process until the copy is complete.
//  5. One script, or on another server one transaction, writes the metadata under the
//     new names and removes the mark.
//
// Fences stay, for a program with old settings may come at any time; the way back
// removes them.
package keymigrate
