package metrics

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/worker"
)

// A family is one metric with all its series.
type family struct {
	name, help string
	kind       prometheus.ValueType
	desc       *prometheus.Desc
}

var all []*family

// families returns all families.
func families() []*family { return all }

// ofWorkers returns the families of workers: all but those of the overview.
func ofWorkers() []*family {
	return slices.DeleteFunc(slices.Clone(all), func(f *family) bool { return strings.HasPrefix(f.name, "runnel_app_") })
}

func define(kind prometheus.ValueType, name, help string, labels ...string) *family {
	name = "runnel_" + name
	f := &family{name, help, kind, prometheus.NewDesc(name, help, append([]string{"app"}, labels...), nil)}
	all = append(all, f)
	return f
}

func counter(name, help string, labels ...string) *family {
	return define(prometheus.CounterValue, name, help, labels...)
}

func gauge(name, help string, labels ...string) *family {
	return define(prometheus.GaugeValue, name, help, labels...)
}

// Names of labels.
var (
	ofStream    = []string{"stream"}
	ofProcessor = []string{"stream", "processor"}
	ofPartition = []string{"stream", "processor", "partition"}
)

// Metrics that a process has once.
var (
	up        = gauge("up", "1 while the app runs in this process, else 0.")
	isReady   = gauge("ready", "1 if the worker owns every partition that it is assigned, 0 while it starts, rebalances or drains.")
	redisUp   = gauge("redis_up", "1 if Redis told how far the owned partitions are, else 0.")
	info      = gauge("worker_info", "1, with the name of the worker.", "worker")
	evicts    = gauge("redis_evicts", "1 if Redis may evict keys: its maxmemory-policy is not noeviction, and maxmemory is set; else 0. Left out where Redis does not tell the worker.")
	startTime = gauge("worker_start_time_seconds", "When the worker began, in seconds since 1970.")

	sent           = counter("sent_records_total", "Records that this process sent, without those that had been sent before under the same ID.", ofStream...)
	sentDuplicates = counter("sent_duplicates_total", "Records that were not appended because they had been sent under the same ID.", ofStream...)
	sendFailures   = counter("send_failures_total", "Records that were not sent (refused), or may not have been (unknown).", "stream", "outcome")
)

// workerCounters are the counters of a worker outside of its processors.
var workerCounters = []struct {
	family *family
	of     func(*worker.Counters) *atomic.Int64
}{
	{counter("trimmed_entries_total", "Entries that were acked by every processor and made room."), func(c *worker.Counters) *atomic.Int64 { return &c.Trimmed }},
	{counter("due_events_total", "Delayed events that became due and were appended by this worker."), func(c *worker.Counters) *atomic.Int64 { return &c.Moved }},
	{counter("task_failures_total", "Runs of tasks that failed."), func(c *worker.Counters) *atomic.Int64 { return &c.TaskFailures }},
	{counter("halts_total", "Errors that stopped the worker."), func(c *worker.Counters) *atomic.Int64 { return &c.Halted }},
	{counter("worker_redis_errors_total", "Requests that failed, each try, of what all processors share: trimming, rules, control, delayed events."), func(c *worker.Counters) *atomic.Int64 { return &c.Errors }},
}

var failures = counter("failures_total", "Events that failed: under a Retry each attempt, under Ignore each event.", "stream", "processor", "policy")

// processorCounters are the counters of a processor.
var processorCounters = []struct {
	family *family
	of     func(*worker.Counters) *atomic.Int64
}{
	{processorCounter("fetched_events_total", "Events that Redis gave to this worker."), func(c *worker.Counters) *atomic.Int64 { return &c.Fetched }},
	{processorCounter("processed_events_total", "Events that were handled, or ignored after a failure. Dead, dropped and skipped ones are counted elsewhere."), func(c *worker.Counters) *atomic.Int64 { return &c.Processed }},
	{processorCounter("acked_events_total", "Events of which Redis confirmed that they are acked or were moved aside."), func(c *worker.Counters) *atomic.Int64 { return &c.Acked }},
	{processorCounter("repeated_events_total", "Events that were delivered though an earlier owner of their partition may have begun them."), func(c *worker.Counters) *atomic.Int64 { return &c.Repeated }},
	{processorCounter("parked_events_total", "Events that were moved aside, to be tried again or to wait behind such an event."), func(c *worker.Counters) *atomic.Int64 { return &c.Parked }},
	{processorCounter("retried_events_total", "Attempts that failed and are to be followed by another one."), func(c *worker.Counters) *atomic.Int64 { return &c.Retried }},
	{processorCounter("dead_events_total", "Events that became dead letters."), func(c *worker.Counters) *atomic.Int64 { return &c.Dead }},
	{processorCounter("dropped_events_total", "Events that were dropped after their last attempt."), func(c *worker.Counters) *atomic.Int64 { return &c.Dropped }},
	{processorCounter("skipped_events_total", "Events that an operator had skipped."), func(c *worker.Counters) *atomic.Int64 { return &c.Skipped }},
	{processorCounter("lost_events_total", "Events that were removed from Redis before they were processed."), func(c *worker.Counters) *atomic.Int64 { return &c.Lost }},
	{processorCounter("lost_partitions_total", "Partitions lost to a lapsed lease or to another owner."), func(c *worker.Counters) *atomic.Int64 { return &c.LostPartitions }},
	{processorCounter("regained_partitions_total", "Partitions that were taken over again because their consumer group was gone."), func(c *worker.Counters) *atomic.Int64 { return &c.Regained }},
	{processorCounter("forgotten_partitions_total", "Partitions of which Redis had forgotten events: it was restarted with an older copy or none, failed over, or they were deleted, renamed or evicted."), func(c *worker.Counters) *atomic.Int64 { return &c.Forgotten }},
	{processorCounter("quarantines_total", "Partitions that a failure stopped, or that were found stopped."), func(c *worker.Counters) *atomic.Int64 { return &c.Quarantined }},
	{processorCounter("stuck_functions_total", "Functions that did not return in time after their context had ended."), func(c *worker.Counters) *atomic.Int64 { return &c.Stuck }},
	{processorCounter("rebalances_total", "Assignments that came to this worker."), func(c *worker.Counters) *atomic.Int64 { return &c.Rebalances }},
	{processorCounter("rejoins_total", "Times that the worker joined anew under another executor ID, after a surprise."), func(c *worker.Counters) *atomic.Int64 { return &c.Rejoins }},
	{processorCounter("lease_refreshes_total", "Refreshes of leases and heartbeat that Redis answered."), func(c *worker.Counters) *atomic.Int64 { return &c.Refreshes }},
	{processorCounter("fenced_requests_total", "Reads and acks that Redis refused because their consumer group was gone."), func(c *worker.Counters) *atomic.Int64 { return &c.Fenced }},
	{processorCounter("redis_errors_total", "Requests that failed, each try: reads, acks, refreshes, releases, parking."), func(c *worker.Counters) *atomic.Int64 { return &c.Errors }},
}

func processorCounter(name, help string) *family { return counter(name, help, ofProcessor...) }
func processorGauge(name, help string) *family   { return gauge(name, help, ofProcessor...) }
func partitionGauge(name, help string) *family   { return gauge(name, help, ofPartition...) }

// processorGauges are the gauges of a processor on this worker.
var processorGauges = []struct {
	family *family
	of     func(*worker.ProcessorStats) float64
}{
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

// Latencies; both are histograms.
var (
	handlerSeconds = define(prometheus.UntypedValue, "handler_seconds", "How long an iteration of the function took: from the moment it got its events until it asked for more, or failed.", ofProcessor...)
	delaySeconds   = define(prometheus.UntypedValue, "event_delay_seconds", "How old the processed events were, by Redis' clock, when they were done.", ofProcessor...)
)

// totalGauges are sums over the partitions of a processor that this worker owns.
var totalGauges = []struct {
	family *family
	of     func(*inspect.Totals) float64
}{
	{processorGauge("lag_events", "Events appended and not yet acked, in the partitions that this worker owns."), func(t *inspect.Totals) float64 { return float64(t.Lag) }},
	{processorGauge("lag_at_least", "1 if the lag is larger than runnel_lag_events says, because nobody counted further."), func(t *inspect.Totals) float64 { return oneIf(t.LagMore) }},
	{processorGauge("oldest_event_age_seconds", "Age of the oldest event that is not acked, in the partitions that this worker owns; 0 without one."), func(t *inspect.Totals) float64 { return float64(t.Age) / 1e3 }},
	{processorGauge("pending_events", "Events delivered and not yet acked, in the partitions that this worker owns."), func(t *inspect.Totals) float64 { return float64(t.Pending) }},
	{processorGauge("stored_parked_events", "Parked events in the partitions that this worker owns."), func(t *inspect.Totals) float64 { return float64(t.Parked) }},
	{processorGauge("stored_dead_letters", "Dead letters in the partitions that this worker owns."), func(t *inspect.Totals) float64 { return float64(t.Dead) }},
	{processorGauge("stored_delayed_events", "Events that wait for their time, in the partitions that this worker owns."), func(t *inspect.Totals) float64 { return float64(t.Delayed) }},
	{processorGauge("quarantined_partitions", "Partitions that this worker owns and that a failure has stopped."), func(t *inspect.Totals) float64 { return float64(t.Quarantined) }},
	{processorGauge("unknown_partitions", "Partitions that this worker owns and that could not be looked at."), func(t *inspect.Totals) float64 { return float64(t.Unknown) }},
}

// partitionGauges are the gauges of a partition that this worker owns.
var partitionGauges = []struct {
	family *family
	of     func(*inspect.PartitionState) float64
}{
	{partitionGauge("partition_lag_events", "Events appended and not yet acked."), func(s *inspect.PartitionState) float64 { return float64(s.Lag) }},
	{partitionGauge("partition_lag_at_least", "1 if the lag is larger than it is said to be, because nobody counted further."), func(s *inspect.PartitionState) float64 { return oneIf(s.LagMore) }},
	{partitionGauge("partition_oldest_event_age_seconds", "Age of the oldest event that is not acked; 0 without one."), func(s *inspect.PartitionState) float64 { return float64(s.Age) / 1e3 }},
	{partitionGauge("partition_length_entries", "Entries in Redis, acked ones too."), func(s *inspect.PartitionState) float64 { return float64(s.Length) }},
	{partitionGauge("partition_epoch", "Number of the partition's ownership."), func(s *inspect.PartitionState) float64 { return float64(s.Epoch) }},
}
