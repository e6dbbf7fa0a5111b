// Package keymigrate gives all keys of a stopped app the names of another key layout,
// and takes them to another server if it is to. Nothing is lost on the way, whenever
// it is interrupted: run again it goes on.
//
// What could go wrong is that somebody works on the old names while, or after, their
// keys leave: a producer that did not notice, a worker that starts, a program in
// another language. Clocks do not exclude that, so the server does:
//
//  1. The app is marked (store.Mark), under both names, and the metadata of its
//     streams say so. From here on every worker and producer that looks is refused.
//  2. A script per partition renames its keys, all or none, unless somebody holds a
//     lock of it, and leaves a fence in the place of the log: a string, on which a
//     send, a read and a takeover fail. So a late send was either before, and went
//     along, or fails, and its sender knows. The same is done with memberships and
//     with what belongs to the app.
//  3. What the metadata do not name is found by SCAN: the IDs of what was sent once,
//     and dead letters of processors that were removed.
//  4. To another server everything is copied now, by DUMP and RESTORE, and compared:
//     nobody can change it. There a mark, too, refuses everybody until all has come.
//  5. One script, or on another server one transaction, writes the metadata under the
//     new names and removes the mark.
//
// Fences stay, for a program with old settings may come at any time; the way back
// removes them.
package keymigrate
