package inspect

import (
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// An AppState is an app as Redis knows it.
type AppState struct {
	App     string        `json:"app"`
	Redis   string        `json:"redis"`  // its address
	At      time.Time     `json:"at"`     // of the look, by Redis' clock
	Leader  string        `json:"leader"` // worker that runs leader-only tasks, "" for none
	Streams []StreamState `json:"streams"`

	LeaderErr string `json:"leader_err,omitempty"` // why the leader cannot be read

	Rules    []RuleState `json:"rules"` // in force
	RulesErr string      `json:"rules_err,omitempty"`

	Evictions []EvictionState `json:"evictions,omitempty"` // from Evictions, in commands

	// Unreadable has the reason for each stream whose metadata cannot be read.
	Unreadable map[string]string `json:"unreadable,omitempty"`

	Extensions map[string][]string `json:"extensions,omitempty"` // what each has to say, in commands
	Parts      []string            `json:"-"`                    // scopes of rules that are of parts of extensions
}

// A StreamState is a stream and its registered processors.
type StreamState struct {
	Stream      string           `json:"stream"`
	Partitions  int              `json:"partitions"`
	Size        int64            `json:"size"`
	Codec       string           `json:"codec"`
	Partitioner string           `json:"partitioner"`
	KeyField    string           `json:"key_field"`
	Layout      string           `json:"layout"`
	Kind        string           `json:"kind,omitempty"` // "" for an ordinary stream; see store.Meta
	Delayed     int64            `json:"delayed"`        // events that wait for their time
	Length      int64            `json:"length"`         // entries in Redis
	Appended    int64            `json:"appended"`       // entries ever appended; -1: unknown, with an embedded Redis
	Processors  []ProcessorState `json:"processors"`
}

// Processors returns the processors of all streams.
func (a *AppState) Processors() (all []*ProcessorState) {
	for i := range a.Streams {
		for j := range a.Streams[i].Processors {
			all = append(all, &a.Streams[i].Processors[j])
		}
	}
	return all
}

// HideInternal removes the streams that only an extension understands, as lists do. Their findings and
// rules stay.
func (a *AppState) HideInternal() {
	a.Streams = slices.DeleteFunc(a.Streams, func(s StreamState) bool { return store.InternalKind(s.Kind) })
}

// A ProcessorState is a processor, its members and their partitions.
type ProcessorState struct {
	Stream     string           `json:"stream"`
	Processor  string           `json:"processor"`
	Generation int64            `json:"generation"`            // of the membership
	Members    []MemberState    `json:"members"`               // by worker, then executor
	MembersErr string           `json:"members_err,omitempty"` // why the membership cannot be read
	Partitions []PartitionState `json:"partitions"`            // each one, in order
	Totals     Totals           `json:"totals"`
	Tables     []TableState     `json:"tables,omitempty"` // from Tables, in `processor info`

	// Outboxes has how many outputs are committed and not yet where they are for, by partition, where there are some.
	Outboxes map[int]int64 `json:"outboxes,omitempty"`

	Pins    map[int]string       `json:"pins,omitempty"`    // partition to worker, by operators
	Cordons map[string]time.Time `json:"cordons,omitempty"` // drained workers, since when
	Gone    map[string]time.Time `json:"gone,omitempty"`    // workers of pins and cordons that are no members, noted since when
}

// PythonWorker stands for the worker of an executor of Python's runnel, which stores no name.
const PythonWorker = "Python's runnel"

// Working returns how many members have a heartbeat.
func (p *ProcessorState) Working() (n int) {
	for i := range p.Members {
		if p.Members[i].Alive {
			n++
		}
	}
	return n
}

// A MemberState is one executor.
type MemberState struct {
	Executor      string    `json:"executor"`
	Worker        string    `json:"worker"` // PythonWorker for one of Python's
	JoinedAt      time.Time `json:"joined_at"`
	Alive         bool      `json:"alive"`          // it has a heartbeat
	HeartbeatLeft int64     `json:"heartbeat_left"` // ms
	Assigned      []int     `json:"assigned"`       // partitions

	Pinned  []int      `json:"pinned,omitempty"`  // partitions that operators assigned to its worker
	Drained *time.Time `json:"drained,omitempty"` // since when its worker is drained

	// Running has since when functions have been running for long, by partition and the worker's
	// clock.
	Running map[int]time.Time `json:"running,omitempty"`
	// NotReading has since when reads have failed, by partition and the worker's clock.
	NotReading map[int]time.Time `json:"not_reading,omitempty"`
}

// A PartitionState is a partition as one processor sees it.
type PartitionState struct {
	Partition int    `json:"partition"`
	Executor  string `json:"executor"`  // that holds the lock, "" for none
	Worker    string `json:"worker"`    // of that executor, "" if it is no member
	LockLeft  int64  `json:"lock_left"` // ms
	Epoch     int64  `json:"epoch"`     // of the last ownership, 0 if there was none
	Tenure    string `json:"tenure"`    // of the owner
	Group     string `json:"group"`     // consumer group, "" if there is none
	Pending   int64  `json:"pending"`   // delivered, not acked; -1: its owner read by position
	Lag       int64  `json:"lag"`       // appended, not yet acked; it includes the pending
	LagMore   bool   `json:"lag_more"`  // the lag is larger than Lag: the count stopped there
	Length    int64  `json:"length"`    // entries in Redis
	Appended  int64  `json:"appended"`  // entries ever appended; -1: unknown, with an embedded Redis
	Floor     string `json:"floor"`     // everything up to here is acked
	End       string `json:"end"`       // the last entry appended
	Oldest    string `json:"oldest"`    // the first unacked entry, "" if all are acked
	Age       int64  `json:"age"`       // ms since Oldest was appended, by Redis' clock
	Delayed   int64  `json:"delayed"`   // waiting for their time, for all processors
	Parked    int64  `json:"parked"`    // waiting for another attempt, or behind such an event
	Retrying  int64  `json:"retrying"`  // of the parked, those that failed; -1: too many to count
	Dead      int64  `json:"dead"`      // dead letters
	Lost      int64  `json:"lost"`      // removed before they were processed

	Held         string           `json:"held,omitempty"`          // "block" or "pause": rules hold it back
	RunningSince *time.Time       `json:"running_since,omitempty"` // an iteration that is running for long, by the worker's clock
	NotReading   *time.Time       `json:"not_reading,omitempty"`   // since when the owner's reads fail, by the worker's clock
	Quarantine   *QuarantineState `json:"quarantine,omitempty"`
	Halt         *QuarantineState `json:"halt,omitempty"`      // why a worker halted, until the event is acked, or without one until a worker owns it
	Forgotten    *ForgottenState  `json:"forgotten,omitempty"` // what Redis has forgotten, for a day
	Err          string           `json:"err,omitempty"`
}

// An EvictionState is a server that removes keys when its memory is full.
type EvictionState struct {
	Redis     string `json:"redis"`      // its address
	Policy    string `json:"policy"`     // maxmemory-policy
	MaxMemory int64  `json:"max_memory"` // bytes, 0: no limit, nothing is evicted yet
	Evicted   int64  `json:"evicted"`    // keys, since its start
	Text      string `json:"text"`       // the same in words
}

// A ForgottenState describes the known loss of a partition's data in Redis.
type ForgottenState struct {
	What string    `json:"what"` // "partition": it was deleted, renamed, evicted or flushed; "state": Redis went back to an older one
	From string    `json:"from"` // entry ID behind which events may be gone
	To   string    `json:"to"`   // the last entry known to have existed, "" for none
	At   time.Time `json:"at"`   // when the loss was found
	Text string    `json:"text"` // the same in words
}

// A QuarantineState is why a partition processes nothing, or why a worker halted.
type QuarantineState struct {
	Reason string    `json:"reason"`
	Event  string    `json:"event"` // partition/entry ID, "" if no event is the cause
	Worker string    `json:"worker"`
	At     time.Time `json:"at"`
}

// Totals are sums over the partitions of a processor.
type Totals struct {
	Owned    int   `json:"owned"`   // partitions whose lock is held
	Pending  int64 `json:"pending"` // -1: the owner of a partition read by position
	Lag      int64 `json:"lag"`
	LagMore  bool  `json:"lag_more"` // the lag of a partition is larger
	Age      int64 `json:"age"`      // the largest
	Length   int64 `json:"length"`
	Delayed  int64 `json:"delayed"`
	Parked   int64 `json:"parked"`
	Retrying int64 `json:"retrying"` // -1: a partition was not counted
	Dead     int64 `json:"dead"`
	Lost     int64 `json:"lost"`
	Outputs  int64 `json:"outputs,omitempty"` // in outboxes

	Quarantined int `json:"quarantined"` // partitions
	Halted      int `json:"halted"`      // partitions with an event at which a worker halted
	Forgotten   int `json:"forgotten"`   // partitions with data that Redis has forgotten within a day
	Held        int `json:"held"`        // partitions that rules hold back
	Unknown     int `json:"unknown"`     // partitions that could not be read, see their err
}

// Sum returns the totals of partitions.
func Sum(partitions []PartitionState) (t Totals) {
	for _, s := range partitions {
		if s.Executor != "" {
			t.Owned++
		}
		if s.Err != "" {
			t.Unknown++
		}
		if s.Quarantine != nil {
			t.Quarantined++
		}
		if s.Halt != nil {
			t.Halted++
		}
		if s.Forgotten != nil {
			t.Forgotten++
		}
		if s.Held != "" {
			t.Held++
		}
		t.Pending = plus(t.Pending, s.Pending)
		t.Lag += s.Lag
		t.LagMore = t.LagMore || s.LagMore
		t.Age = max(t.Age, s.Age)
		t.Length += s.Length
		t.Delayed += s.Delayed
		t.Parked += s.Parked
		t.Retrying = plus(t.Retrying, s.Retrying)
		t.Dead += s.Dead
		t.Lost += s.Lost
	}
	return t
}

// sum sets the totals.
func (p *ProcessorState) sum() {
	p.Totals = Sum(p.Partitions)
	p.Totals.Outputs = Waiting(p.Outboxes)
}

// plus adds two numbers, of which a negative one is not known.
func plus(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}
