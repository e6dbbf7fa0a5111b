// Package admin is what an operator can do and see, in Go. The command line and the dashboard
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
// A rule says what does not run: an operator pauses, an administrator blocks, each the app, a
// stream, a processor, or one of its partitions. What either covers takes no event and starts
// no call of its function, on every worker within a second and on those that start later;
// locks, reads, heartbeats and rebalances go on, and what is sent meanwhile is processed
// afterwards. Rules are kept in Redis, and by workers that cannot read them any more.
//
// # Rights
//
// Nothing but the rights of the Redis user keeps a program from calling any of this;
// docs/security.md has what each needs.
package admin
