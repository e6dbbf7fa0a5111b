// Package redisconn is how this framework talks to Redis: to one server, behind Sentinel, or
// to a Redis Cluster. It knows neither streams of records nor processors.
//
// Whether a command may be repeated decides which client runs it:
//
//   - reads that change nothing run on Retrying, which go-redis may have repeat them;
//   - XACK, XADD and the scripts run on NoRetry, which never repeats a command, for a
//     repeated XADD appends twice and a repeated XACK answers 0. What comes at the same
//     time shares a round trip (Batched, PerNode);
//   - XREADGROUP runs on a Reader, one connection of its own, whose ID is known,
//     so that a read whose reply was lost can be ended for certain.
//
// A RESP error means that nothing was executed. Everything else that goes wrong
// once a request was on its way is an unknown outcome: it may have been executed,
// or may still be.
package redisconn
