// Package redisconn has the framework's connections to Redis: to one server, to a master
// behind Sentinel, or to a Redis Cluster. It knows neither streams of records nor
// processors.
//
// Whether a command may be repeated decides which client runs it:
//
//   - reads that change nothing run on Retrying, which go-redis may have repeat them;
//   - XACK, XADD and the scripts run on NoRetry, which never repeats a command, for a
//     repeated XADD appends twice and a repeated XACK answers 0. What comes at the same
//     time shares a round trip (Batched, PerNode);
//   - XREADGROUP runs on a Reader, one connection of its own, whose ID is known,
//     so that a read whose reply was lost can be ended for certain;
//   - XREAD runs on a Tail, which follows many logs and may be repeated after any error.
//
// A RESP error means that nothing was executed. Any other error after the request was
// sent is an unknown outcome: the request may have been executed, or may still be.
package redisconn
