// Package conformance holds the tests of what the framework promises as a whole, of real
// workers on real redis-servers. Its files are suites by their prefix:
//
//   - fence_ hurts workers in each way in which an ownership can go wrong, one test for each:
//     internal/test/mutants switches off one rule of the protocol after another and asserts
//     that one of these tests notices.
//   - faults_ takes away or changes what workers depend on: the server, its memory and storage,
//     metadata, groups and keys of a wrong type, the log.
//   - figures_ measures what is promised in seconds, requests and bytes.
//   - retry_ and delay_ hold the promises about failed and about delayed events under faults
//     and beside each other.
//   - work_ has everything else that an app may do: rules, trimming, programs and partitions of
//     any number, an app of Python at the same streams.
//
// durability_ holds them where replicas take over.
//
// What only takes fake time is a test of the root, and what any fault may do to a flow of
// events is internal/test/chaos: here is what a real server, or a single request, decides.
//
// Every test ends at rest: each partition has one consumer group, that of the
// executor that holds its lock and that the membership assigns it to, and
// nothing is pending there that its owner does not hold.
package conformance
