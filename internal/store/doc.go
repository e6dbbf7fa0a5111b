// Package store is Redis as this framework uses it: the scripts of the fence,
// locks, reading, acking, appending, trimming, the metadata of streams, the
// membership of processors and the control stream. Nothing here knows records,
// and nothing here logs: every error names the operation and the partition.
//
// How a command is sent, and what its failure means, is in redisconn.
package store
