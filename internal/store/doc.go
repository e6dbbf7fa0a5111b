// Package store is Redis as this framework uses it: the scripts of the fence,
// locks, reading, acking, appending, trimming, the metadata of streams, the
// membership of processors and the control stream. Nothing here knows records,
// and nothing here logs: every error names the operation and the partition.
//
// Who may be repeated decides which client runs a command:
//
//   - reads that change nothing run on a client that go-redis may retry;
//   - XACK, XADD and the scripts run on one that never repeats a command, for a
//     repeated XADD appends twice and a repeated XACK answers 0. Of sends, takeovers
//     and releases those that come at the same time share a round trip (gather.go);
//   - XREADGROUP runs on a Reader, one connection of its own, whose ID is known,
//     so that a read whose reply was lost can be ended for certain.
//
// A RESP error means that nothing was executed. Everything else that goes wrong
// once a request was on its way is an unknown outcome: it may have been executed,
// or may still be.
package store
