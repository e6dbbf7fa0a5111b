package families

import (
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/worker"
)

var (
	ofStream    = []string{"stream"}
	ofProcessor = []string{"processor", "stream"}
	ofPartition = []string{"partition", "processor", "stream"}
	ofTable     = []string{"processor", "stream", "table"}
)

// Metrics outside of the tables.
var (
	up           = gauge("up", "1 while the app runs in this process, else 0.")
	redisUp      = gauge("redis_up", "1 if Redis told how far the owned partitions are, else 0.")
	info         = gauge("worker_info", "1, with the name of the worker.", "worker")
	evicts       = gauge("redis_evicts", "1 if Redis may evict keys: its maxmemory-policy is not noeviction, and maxmemory is set; else 0. Left out where Redis does not tell the worker.")
	failures     = counter("failures_total", "Events that failed: under a Retry each attempt, under Ignore each event.", "policy", "processor", "stream")
	sendFailures = counter("send_failures_total", "Records that were not sent (refused), or may not have been (unknown).", "outcome", "stream")
)

var sendCounters = []row[*appview.Stream]{
	{counter("sent_records_total", "Records that this process sent, without those that had been sent before under the same ID.", ofStream...), func(s *appview.Stream) float64 { return load(&s.Sent.Sent) }},
	{counter("sent_duplicates_total", "Records that were not appended because they had been sent under the same ID.", ofStream...), func(s *appview.Stream) float64 { return load(&s.Sent.Duplicates) }},
}

// workerRows are the metrics of a worker outside of its processors.
var workerRows = []row[*worker.Stats]{
	{gauge("worker_start_time_seconds", "When the worker began, in seconds since 1970."), func(s *worker.Stats) float64 { return float64(s.Began.UnixMilli()) / 1e3 }},
	{gauge("ready", "1 if the worker owns every partition that it is assigned, 0 while it starts, rebalances or drains."), func(s *worker.Stats) float64 { return oneIf(s.Ready == nil) }},
	{counter("trimmed_entries_total", "Entries that were acked by every processor and made room."), func(s *worker.Stats) float64 { return load(&s.Counters.Trimmed) }},
	{counter("due_events_total", "Delayed events that became due and were appended by this worker."), func(s *worker.Stats) float64 { return load(&s.Counters.Moved) }},
	{counter("task_failures_total", "Runs of tasks that failed."), func(s *worker.Stats) float64 { return load(&s.Counters.TaskFailures) }},
	{counter("halts_total", "Errors that stopped the worker."), func(s *worker.Stats) float64 { return load(&s.Counters.Halted) }},
	{counter("worker_redis_errors_total", "Requests that failed, each try, of what all processors share: trimming, rules, control, delayed events."), func(s *worker.Stats) float64 { return load(&s.Counters.Errors) }},
}

func processorCounter(name, help string) *Family { return counter(name, help, ofProcessor...) }
func processorGauge(name, help string) *Family   { return gauge(name, help, ofProcessor...) }
func partitionGauge(name, help string) *Family   { return gauge(name, help, ofPartition...) }

// eventRows count events: those of internal streams mean nothing.
var eventRows = []row[*worker.ProcessorStats]{
	{processorCounter("fetched_events_total", "Events that Redis gave to this worker."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Fetched) }},
	{processorCounter("processed_events_total", "Events that were handled, or ignored after a failure. Dead, dropped and skipped ones are counted elsewhere."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Processed) }},
	{processorCounter("acked_events_total", "Events of which Redis confirmed that they are acked or were moved aside."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Acked) }},
	{processorCounter("repeated_events_total", "Events that were delivered though an earlier owner of their partition may have begun them."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Repeated) }},
	{processorCounter("parked_events_total", "Events that were moved aside, to be tried again or to wait behind such an event."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Parked) }},
	{processorCounter("retried_events_total", "Attempts that failed and are to be followed by another one."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Retried) }},
	{processorCounter("dead_events_total", "Events that became dead letters."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Dead) }},
	{processorCounter("dropped_events_total", "Events that were dropped after their last attempt."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Dropped) }},
	{processorCounter("skipped_events_total", "Events that an operator had skipped."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Skipped) }},
	{processorCounter("lost_events_total", "Events that were removed from Redis before they were processed."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Lost) }},
}

var processorRows = []row[*worker.ProcessorStats]{
	{processorCounter("lost_partitions_total", "Partitions lost to a lapsed lease or to another owner."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.LostPartitions) }},
	{processorCounter("regained_partitions_total", "Partitions that were taken over again because their consumer group was gone."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Regained) }},
	{processorCounter("forgotten_partitions_total", "Partitions of which Redis had forgotten events: it was restarted with an older copy or none, failed over, or they were deleted, renamed or evicted."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Forgotten) }},
	{processorCounter("quarantines_total", "Partitions that a failure stopped, or that were found stopped."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Quarantined) }},
	{processorCounter("stuck_functions_total", "Functions that did not return in time after their context had ended."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Stuck) }},
	{processorCounter("rebalances_total", "Assignments that came to this worker."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Rebalances) }},
	{processorCounter("rejoins_total", "Times that the worker joined anew under another executor ID, after a surprise."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Rejoins) }},
	{processorCounter("lease_refreshes_total", "Refreshes of leases and heartbeat that Redis answered."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Refreshes) }},
	{processorCounter("fenced_requests_total", "Reads and acks that Redis refused because their consumer group was gone."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Fenced) }},
	{processorCounter("commits_total", "Commits of positions, with what was changed and emitted up to them; 0 by group, which acks events."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Commits) }},
	{processorCounter("hops_total", "Outputs for partitions of other numbers that came there, by way of an outbox."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Hops) }},
	{processorCounter("redis_errors_total", "Requests that failed, each try: reads, acks, refreshes, releases, parking."), func(s *worker.ProcessorStats) float64 { return load(&s.Counters.Errors) }},
	{processorGauge("partitions", "Partitions that the processor has, in all workers together."), func(s *worker.ProcessorStats) float64 { return float64(s.Partitions) }},
	{processorGauge("members", "Members of the processor, in all workers."), func(s *worker.ProcessorStats) float64 { return float64(s.Members) }},
	{processorGauge("membership_generation", "Number of changes of the membership that this worker follows."), func(s *worker.ProcessorStats) float64 { return float64(s.Generation) }},
	{processorGauge("assigned_partitions", "Partitions that this worker is assigned."), func(s *worker.ProcessorStats) float64 { return float64(len(s.Assigned)) }},
	{processorGauge("owned_partitions", "Partitions that this worker owns."), func(s *worker.ProcessorStats) float64 { return float64(len(s.Owned)) }},
	{processorGauge("running_functions", "Partitions whose function has an event at the moment."), func(s *worker.ProcessorStats) float64 { return float64(s.Running) }},
	{processorGauge("buffered_events", "Events read ahead."), func(s *worker.ProcessorStats) float64 { return float64(s.Waiting) }},
	{processorGauge("buffered_bytes", "Bytes of the events read ahead."), func(s *worker.ProcessorStats) float64 { return float64(s.Bytes) }},
	{processorGauge("unacked_events", "Events processed here and not yet acked: these would repeat after a crash."), func(s *worker.ProcessorStats) float64 { return float64(s.Unacked) }},
}

// tableRows are the metrics of the tables of processors.
var tableRows = []row[tableOf]{
	{counter("rows_written_total", "Rows that were set or deleted in commits.", ofTable...), func(t tableOf) float64 { return load(&t.Budget.Written) }},
	{counter("rows_asked_total", "Rows that Redis was asked for, since they were not in memory.", ofTable...), func(t tableOf) float64 { return load(&t.Budget.Asked) }},
	{counter("rows_kept_total", "Rows that stay without an end, since the function for it has failed.", ofTable...), func(t tableOf) float64 { return load(&t.Budget.Kept) }},
	{gauge("rows_memory_bytes", "Bytes of rows in the memory of this worker, about.", ofTable...), func(t tableOf) float64 { return float64(t.Budget.Used()) }},
}

var storedRowsGauge = gauge("stored_rows", "Rows in Redis, in the partitions that this worker owns.", ofTable...)

// Histograms of latencies.
var (
	handlerSeconds = define(Histogram, "handler_seconds", "How long an iteration of the function took: from the moment it got its events until it asked for more, or failed.", ofProcessor...)
	delaySeconds   = define(Histogram, "event_delay_seconds", "How old the processed events were, by Redis' clock, when they were done.", ofProcessor...)
)

// Sums over the partitions of a processor that this worker owns. Those of lag say nothing about
// internal streams.
var lagGauges = []row[*look]{
	{processorGauge("lag_events", "Events appended and not yet acked, in the partitions that this worker owns."), func(l *look) float64 { return float64(l.totals.Lag) }},
	{processorGauge("lag_at_least", "1 if the lag is larger than runnel_lag_events says, because counting stopped at a limit."), func(l *look) float64 { return oneIf(l.totals.LagMore) }},
	{processorGauge("oldest_event_age_seconds", "Age of the oldest event that is not acked, in the partitions that this worker owns; 0 without one."), func(l *look) float64 { return float64(l.totals.Age) / 1e3 }},
	{processorGauge("pending_events", "Events delivered and not yet acked, in the partitions that this worker owns; 0 by position, of which Redis does not know it."), func(l *look) float64 { return float64(max(l.totals.Pending, 0)) }},
}

var totalGauges = []row[*look]{
	{processorGauge("stored_parked_events", "Parked events in the partitions that this worker owns."), func(l *look) float64 { return float64(l.totals.Parked) }},
	{processorGauge("stored_dead_letters", "Dead letters in the partitions that this worker owns."), func(l *look) float64 { return float64(l.totals.Dead) }},
	{processorGauge("stored_delayed_events", "Events that wait for their time, in the partitions that this worker owns."), func(l *look) float64 { return float64(l.totals.Delayed) }},
	{processorGauge("outbox_entries", "Outputs in the outboxes of the partitions that this worker owns: committed, and not yet where they are for."), func(l *look) float64 { return float64(l.totals.Outputs) }},
	{processorGauge("quarantined_partitions", "Partitions that this worker owns and that a failure has stopped."), func(l *look) float64 { return float64(l.totals.Quarantined) }},
	{processorGauge("unknown_partitions", "Partitions that this worker owns and that could not be looked at."), func(l *look) float64 { return float64(l.totals.Unknown) }},
}

var partitionLagGauges = []row[ownedPartition]{
	{partitionGauge("partition_lag_events", "Events appended and not yet acked."), func(p ownedPartition) float64 { return float64(p.Lag) }},
	{partitionGauge("partition_lag_at_least", "1 if the lag is larger than it is said to be, because counting stopped at a limit."), func(p ownedPartition) float64 { return oneIf(p.LagMore) }},
	{partitionGauge("partition_oldest_event_age_seconds", "Age of the oldest event that is not acked; 0 without one."), func(p ownedPartition) float64 { return float64(p.Age) / 1e3 }},
}

var partitionGauges = []row[ownedPartition]{
	{partitionGauge("partition_length_entries", "Entries in Redis, acked ones too."), func(p ownedPartition) float64 { return float64(p.Length) }},
	{partitionGauge("partition_epoch", "Number of the partition's ownership."), func(p ownedPartition) float64 { return float64(p.Epoch) }},
}
