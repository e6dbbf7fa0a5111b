// Package mutants holds the test of the fence's own tests: it switches off one
// rule of the protocol after another and asserts that a test of
// internal/conformance notices. It is a package of its own because it builds the
// program many times, which would disturb tests that need the machine.
package mutants
