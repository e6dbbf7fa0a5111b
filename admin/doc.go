// Package admin inspects and operates an app, in Go. The command line and the dashboard
// are built on it.
//
//	client := admin.New(app)
//	err := client.Pause(ctx, admin.ProcessorScope("orders", "printer"), &admin.RuleOptions{Why: "no paper"})
//
//	dead := client.DeadLetters("orders", "printer")
//	letters, err := dead.List(ctx, &admin.Filter{Error: "timeout"})
//	_, err = dead.Retry(ctx, letters)
//
// # Where to begin
//
//   - How it goes: [Client.Status], [Client.Streams].
//   - Rules: [Client.Pause], [Client.Resume], [Client.Block], [Client.Unblock], [Client.Rules], [Client.Wait].
//   - A partition that a failed event has stopped: [Client.Quarantines], [Client.Release].
//   - Events that failed: [Client.DeadLetters], and [Client.Parked] for those that wait for another attempt.
//   - Events that wait for their time: [Client.Delayed].
//   - Where a processor stands: [Client.Positions].
//   - Which worker gets which partition: [Client.Workers].
//   - What is used no more: [Client.RemoveProcessor], [Client.RemoveGroup], [Client.RemoveStream].
//
// # Rules
//
// A rule stops processing: an operator pauses, an administrator blocks, each the app, a
// stream, a processor, or one of its partitions. Partitions that a rule covers take no
// event and start no call of their function. A rule takes effect on every worker within a
// second, and on workers that start later. Locks, reads, heartbeats and rebalances go on,
// and events sent meanwhile are processed afterwards. Rules are stored in Redis; workers
// that cannot read them any more keep the last ones.
//
// # Rights
//
// Only the rights of the Redis user restrict which of these calls a program can make;
// docs/security.md lists the rights that each needs.
package admin
