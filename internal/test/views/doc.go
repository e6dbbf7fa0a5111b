// Package views holds what operators see to the truth. It brings about a scene with
// real workers (one is killed, a processor is paused, a partition quarantined, a key
// is poison, entries are deleted by hand) of which every number is known, and compares
// the commands, the metrics and the dashboard with it; what the commands print as JSON
// is kept in testdata, with what differs from run to run named instead of shown.
package views
