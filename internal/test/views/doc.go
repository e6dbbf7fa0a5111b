// Package views compares what operators see with the truth. It creates a scene with real workers
// (one killed, a processor paused, a partition quarantined, a poison key, entries deleted) of which
// every number is known, and checks commands, metrics and the dashboard against it. The JSON output
// of commands is kept in testdata, with varying values replaced by names, and in testdata/position where
// it differs for owners that read by position.
package views
