// Package conformance holds the tests of what the framework promises as a
// whole. The fence_*_test.go files hurt real workers on real redis-servers, one
// test for each way in which an ownership can go wrong; internal/test/mutants switches
// off one rule of the protocol after another and asserts that one of these tests
// notices. The others are faults, figures and shapes of work.
//
// Every test ends at rest: each partition has one consumer group, that of the
// executor that holds its lock and that the membership assigns it to, and
// nothing is pending there that its owner does not hold.
package conformance
