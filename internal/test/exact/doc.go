// Package exact judges whether each event of an Atomic processor counted once: rows, outputs and position are compared
// with a fold over what the streams hold. Its tests hurt real worker processes over real servers meanwhile:
//
//	RUNNEL_TEST=full go test ./internal/test/exact          all of them
//	RUNNEL_EXACT_EVENTS=300000 … go test -run Kills …       with so many events
//	RUNNEL_EXACT_SEED=7 …                                   the same choice of faults again
//
// The events of a test are marks. A processor adds each to the row of its key, and to one row of its partition, and
// emits one mark or two for it. Each execution draws a nonce, which it writes into the rows and into what it emits. So
// whatever is found of an event must be of one execution.
package exact
