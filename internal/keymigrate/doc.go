// Package keymigrate gives all keys of a stopped app the names of another key layout and, if asked
// to, takes them to another server. Nothing is lost when it is interrupted: run again, it goes on.
//
// A producer that did not notice, a worker that starts, or a program in another language may use
// the old names during or after the move. Clocks cannot exclude that, so the server does:
//
//  1. The app is marked (store.Mark) under both names, and the metadata of its streams say so. From
//     here on every worker and producer that looks is refused.
//  2. A script per partition renames its keys, all or none, unless a lock of the partition is held,
//     and leaves a fence in the place of the log: a string, on which a send, a read and a takeover
//     fail. So a late send either came before, and went along, or fails, and its sender knows. The
//     same is done with memberships and with what belongs to the app.
//  3. SCAN finds what the metadata do not name: the IDs of sent records, and dead letters of removed
//     processors.
//  4. With another server as the target, everything is now copied by DUMP and RESTORE, and compared.
//     Nothing can change it meanwhile. A mark on the target, too, refuses every process until the
//     copy is complete.
//  5. One script, or on another server one transaction, writes the metadata under the new names and
//     removes the mark.
//
// Fences stay, as a program with old settings may come at any time. The way back removes them.
package keymigrate
