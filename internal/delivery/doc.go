// Package delivery is what the owner of a webhook subscriber knows of it: which events of numbered logs it has, which it
// has not, and what is sent next. It is pure: entries, answers, times and settings come in, batches and the state to
// store go out.
//
// A numbered log has entries "<ms>-<n>": n counts them from 1 without gaps, ms is when an entry was appended and
// never goes back. So one ID is order, time and count, and a missing number is an entry that was removed.
//
// A subscriber has a position per log: up to there everything is settled. Behind it come the members of the open batch, if
// there is one, and then events that are loaded and free. A batch takes the oldest free events, of each log the next ones, and only one is open.
// So per log what is settled, open and free follow each other, and what is missing between two of
// them needs no memory: it is counted as dropped when the position passes it, once, whoever is the owner by then.
//
//	Load → free → Next → open and running → Done  → settled: sent
//	         ↑                            ↘ Fail  → open, waits until a time → Next, with the same members
//	         └──────────── dissolved ───────┴──────────────────────────────→ settled: dead
//
// The owner stores the state between Next and the request, so that the next owner repeats the batch, whole and under the
// same key. A batch that cannot be repeated, or has failed too often, is dissolved: its events are free again. An open
// batch is dissolved when
//
//	a member is missing when it is loaded after a takeover, or its log was set back
//	it waits, and a member is older than the retention, or of a log that the settings do not name anymore
//	it had all its attempts, and has several events: these are sent alone
//	it was too large for the receiver: half as many events follow
//
// Always, for all logs of a subscriber together:
//
//	position − start = sent + dropped + dead
//
// By file:
//
//	id.go       ID of an entry, Runs of numbers
//	state.go    State: what is stored; its JSON
//	figures.go  Figures: sent, queued, dropped and dead, exactly, by a look from outside
//	batch.go    Event, Batch: body and key
//	window.go   Window: settings, and what is loaded
//	send.go     Window: what is sent, and what becomes of it
package delivery
