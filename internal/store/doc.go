// Package store is Redis as this framework uses it: the scripts of the fence,
// locks, reading, acking, appending, trimming, the metadata of streams, the
// membership of processors and the control stream. Nothing here knows records,
// and nothing here logs: every error names the operation and the partition.
//
// A Client has one part for each purpose: MetaStore, Producer and DelayedStore for streams and
// what is sent to them; Owner, RetryStore, Control and TaskStore for workers; RuleStore, ACL and
// AuditLog for what is allowed and what people did; Viewer to look, and Operator to change what
// is stored.
//
// How a command is sent, and what its failure means, is in redisconn.
package store
