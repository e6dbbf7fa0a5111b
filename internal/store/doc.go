// Package store is Redis as this framework uses it: the scripts of the fence, locks, reading,
// acking, appending, trimming, the metadata of streams, the membership of processors and the
// control stream. It knows no records, and it logs nothing: every error names the operation and the
// partition.
//
// A Client has one part for each purpose: MetaStore, Producer and DelayedStore for streams and what
// is sent to them; Owner, RetryStore, Control and TaskStore for workers; RuleStore, ACL and
// AuditLog for what is allowed and what operators did; Viewer to look, and Operator to change what
// is stored.
//
// Package redisconn sends the commands, and says what their failures mean.
package store
