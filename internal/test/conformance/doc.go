// Package conformance holds the tests of the framework as a whole, of real workers on real
// redis-servers. Its files are suites by their prefix:
//
//   - fence_ breaks ownership in each possible way, one test for each:
//     internal/test/mutants switches off one rule of the protocol after another and asserts
//     that one of these tests notices.
//   - faults_ removes or changes what workers depend on: the server, its memory and storage,
//     metadata, groups and keys of a wrong type, the log.
//   - figures_ measures guarantees in seconds, requests and bytes.
//   - retry_ and delay_ test failed and delayed events under faults and beside each other.
//   - work_ has the rest: rules, trimming, programs and partitions of any number, an app of
//     Python at the same streams.
//   - durability_ tests all of them with failovers to replicas.
//
// Tests that need only fake time are in the root; tests of arbitrary faults under load are in
// internal/test/chaos. Here a real server, or a single request, decides.
//
// Every test ends at rest: each partition has one consumer group, that of the
// executor that holds its lock and that the membership assigns it to, and
// nothing is pending there that its owner does not hold.
package conformance
