// Package mutants holds the test of the fence's own tests: it switches off one
// rule of the protocol after another and asserts that a test of
// internal/test/conformance notices, and, of some of them, that internal/test/chaos does: its
// judge has to find what goes wrong among real processes, under faults that are
// aimed at the rule. Each of the two is built once, with all rules in it that can be
// switched off.
package mutants
