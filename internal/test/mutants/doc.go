// Package mutants tests the tests of the fence: it switches off one rule of the protocol after
// another and asserts that a test of internal/test/conformance fails. For some rules
// internal/test/chaos has to notice too: its judge must find the violation among real processes,
// under faults aimed at the rule. Each of the two is built once, with all rules that can be
// switched off.
package mutants
