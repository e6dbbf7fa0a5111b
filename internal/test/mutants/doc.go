// Package mutants holds the test of the fence's own tests: it switches off one
// rule of the protocol after another and asserts that a test of
// internal/test/conformance notices, and, of some of them, that internal/test/chaos does: its
// judge has to find what goes wrong among real processes, under faults that are
// aimed at the rule. It is a package of its own because it builds the
// program many times, which would disturb tests that need the machine.
package mutants
