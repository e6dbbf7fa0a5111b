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
//   - The state of the app: [Client.Status], [Client.Streams].
//   - Rules: [Client.Pause], [Client.Resume], [Client.Block], [Client.Unblock], [Client.Rules], [Client.Wait].
//   - A partition that a failed event has stopped: [Client.Quarantines], [Client.Release].
//   - Events that failed: [Client.DeadLetters], and [Client.Parked] for those that wait for another attempt.
//   - Events that wait for their time: [Client.Delayed].
//   - Where a processor stands: [Client.Positions].
//   - Which worker gets which partition: [Client.Workers].
//   - Removing what is unused: [Client.RemoveProcessor], [Client.RemoveGroup], [Client.RemoveStream].
//
// # Rules
//
// A rule stops processing in its scope: the app, a stream, a processor, or one partition. An operator
// pauses, an administrator blocks. Partitions under a rule take no event and start no call of their
// function. A rule takes effect on every worker within a second, and on workers that start later.
// Locks, reads, heartbeats and rebalances go on, and events sent meanwhile are processed afterwards.
// Rules are stored in Redis; workers that can no longer read them keep the last ones.
//
// # Rights
//
// Only the rights of the Redis user restrict these calls; docs/security.md lists what each needs.
package admin
