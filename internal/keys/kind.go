package keys

import (
	"slices"
	"strings"
)

// A Per says what has a key of its own.
type Per int

const (
	PerApp       Per = iota
	PerStream        // of the app
	PerProcessor     // of a stream
	PerExecutor      // of a processor
	PerPartition     // of a stream
	PerOwner         // of a partition: each processor, or stage
	PerTable         // of a partition
)

// partitioned reports whether such keys belong to a partition, whose hash tag they carry.
func (p Per) partitioned() bool { return p >= PerPartition }

// A Kind is a kind of keys. Rights, probes, moves to other names, the removal of streams and the
// docs know the kinds from Kinds alone.
type Kind struct {
	Name  string // "strm" in __strm:shop.orders.3
	Per   Per
	Admin bool   // the name ends in "admin"
	ID    bool   // the name ends in a colon and an ID, any text
	What  string // what such keys are together, "" for keys that expire by themselves and are not moved
	Count string // command that counts what is in one, "" for one thing, "-" for a part of what another kind counts
	Probe string // command for any role that Redis refuses on another type, "" where the calls name the key
	Large bool   // the value may be large
	Roles Role   // that read and write it; rules and blocks have rights of their own
	Old   bool   // nothing writes it any more

	Extension string // that alone has such keys, "" for the core; "table" for apps with tables
}

// Kinds are all kinds of keys.
var Kinds = []Kind{
	{Name: "strm", Per: PerPartition, What: "partitions", Count: "XLEN", Probe: "XLEN", Large: true, Roles: Everyone},
	{Name: "duedata", Per: PerPartition, What: "delayed", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone},
	{Name: "due", Per: PerPartition, What: "delayed", Count: "-", Probe: "ZCARD", Large: true, Roles: Everyone},
	{Name: "duerun", Per: PerPartition, What: "delayed", Count: "-", Old: true},
	{Name: "duever", Per: PerPartition, What: "delayed", Count: "-", Probe: "HLEN", Large: true, Roles: Everyone},
	{Name: "dueatt", Per: PerPartition, What: "delayed", Count: "-", Old: true},
	{Name: "dueseq", Per: PerPartition, What: "delayed", Count: "-", Probe: "GET", Roles: Everyone},
	{Name: "id", Per: PerPartition, ID: true, What: "sent ids", Probe: "GET", Roles: Everyone &^ Watch},
	{Name: "own", Per: PerOwner, What: "positions", Probe: "HLEN", Roles: Everyone},
	{Name: "parked", Per: PerOwner, What: "parked", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Name: "retry", Per: PerOwner, What: "attempts", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Name: "dead", Per: PerOwner, What: "dead letters", Count: "XLEN", Probe: "XLEN", Large: true, Roles: Everyone &^ Produce},
	{Name: "lock", Per: PerOwner, Probe: "GET", Roles: Everyone &^ Produce},
	{Name: "lock", Per: PerProcessor, Admin: true, Probe: "GET", Roles: Work | Operate},
	{Name: "memb", Per: PerProcessor, What: "memberships", Roles: Everyone &^ Produce},
	{Name: "beat", Per: PerExecutor, Probe: "GET", Roles: Everyone &^ Produce},
	{Name: "ctrl", Per: PerProcessor, What: "control", Count: "XLEN", Probe: "XLEN", Roles: Everyone &^ Watch},
	{Name: "ctrl", Per: PerApp, What: "control", Count: "XLEN", Probe: "XLEN", Roles: Work | Operate},
	{Name: "rules", Per: PerApp, What: "rules", Count: "HLEN"},
	{Name: "block", Per: PerApp, What: "rules", Count: "HLEN"},
	{Name: "audit", Per: PerApp, What: "audit", Count: "XLEN", Large: true, Roles: Operate},
	{Name: "task", Per: PerApp, What: "tasks", Count: "HLEN", Probe: "HLEN", Roles: Work},
	{Name: "leader", Per: PerApp, Probe: "GET", Roles: Everyone &^ Produce},
	{Name: "meta", Per: PerStream, What: "metadata", Roles: Everyone},
	{Name: "meta", Per: PerApp, What: "metadata", Roles: Everyone},

	{Extension: "table", Name: "rows", Per: PerTable, What: "rows", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone},
	{Extension: "table", Name: "until", Per: PerTable, What: "rows", Count: "-", Probe: "ZCARD", Large: true, Roles: Everyone},

	{Extension: "table", Name: "out", Per: PerOwner, What: "outputs", Count: "XLEN", Probe: "XLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "table", Name: "hop", Per: PerPartition, What: "outputs", Count: "-", Probe: "HLEN", Large: true, Roles: Work | Operate},

	{Extension: "stage", Name: "ent", Per: PerPartition, What: "entities", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone},
	{Extension: "stage", Name: "entseq", Per: PerPartition, What: "entities", Count: "-", Probe: "GET", Roles: Everyone &^ Watch},
	{Extension: "stage", Name: "touch", Per: PerPartition, What: "visits", Count: "ZCARD", Probe: "ZCARD", Large: true, Roles: Everyone},
	{Extension: "stage", Name: "visit", Per: PerOwner, What: "visits", Count: "ZCARD", Probe: "ZCARD", Large: true, Roles: Everyone},
	{Extension: "stage", Name: "visitrun", Per: PerPartition, What: "visits", Count: "HLEN", Probe: "HLEN", Roles: Everyone},
	{Extension: "stage", Name: "visitfail", Per: PerPartition, What: "failed visits", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone},
	{Extension: "stage", Name: "visitdead", Per: PerOwner, What: "dead visits", Count: "ZCARD", Probe: "ZCARD", Large: true, Roles: Everyone},

	{Extension: "schedule", Name: "sjobs", Per: PerPartition, What: "jobs", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "sops", Per: PerPartition, What: "operations", Count: "-", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "slog", Per: PerPartition, ID: true, Probe: "XLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "sdef", Per: PerPartition, What: "job definitions", Count: "-", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "scell", Per: PerPartition, What: "runs", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "sgrid", Per: PerPartition, What: "runs", Count: "-", Probe: "ZCARD", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "sready", Per: PerPartition, What: "runs", Count: "-", Probe: "ZCARD", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "slater", Per: PerPartition, What: "runs", Count: "-", Probe: "ZCARD", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "srun", Per: PerPartition, What: "runs", Count: "-", Probe: "ZCARD", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "swait", Per: PerPartition, What: "runs", Count: "-", Probe: "ZCARD", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "splace", Per: PerPartition, What: "runs", Count: "-", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "sseq", Per: PerPartition, What: "runs", Count: "-", Probe: "GET", Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "srunner", Per: PerPartition, What: "runs", Count: "-", Probe: "ZCARD", Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "sheap", Per: PerPartition, What: "triggers", Count: "ZCARD", Probe: "ZCARD", Large: true, Roles: Everyone &^ Produce},
	{Extension: "schedule", Name: "srule", Per: PerPartition, What: "triggers", Count: "-", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},

	{Extension: "webhook", Name: "num", Per: PerPartition, What: "last ids", Count: "-", Probe: "GET", Roles: Everyone},
	{Extension: "webhook", Name: "holder", Per: PerPartition, What: "holders", Count: "-", Probe: "HLEN", Roles: Everyone},
	{Extension: "webhook", Name: "whtopic", Per: PerPartition, What: "topics", Count: "HLEN", Probe: "HLEN", Roles: Everyone},
	{Extension: "webhook", Name: "whtoken", Per: PerPartition, What: "tokens", Count: "HLEN", Probe: "HLEN", Roles: Work | Operate},
	{Extension: "webhook", Name: "whconf", Per: PerPartition, What: "subscribers", Count: "HLEN", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
	{Extension: "webhook", Name: "whsub", Per: PerPartition, What: "subscribers", Count: "-", Probe: "HLEN", Large: true, Roles: Everyone &^ Produce},
}

// Counted reports whether Count is a command.
func (kind Kind) Counted() bool { return kind.Count != "" && kind.Count != "-" }

// KindOf returns the first kind of this name. Kinds of one name differ in Per, Admin and Roles only.
func KindOf(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// MustKind is KindOf of a name that is written down: it panics if there is no such kind.
func MustKind(name string) Kind {
	kind, ok := KindOf(name)
	if !ok {
		panic("no kind of keys " + name)
	}
	return kind
}

// Key returns a key of the kind. It ignores what the kind has none of; id is an executor's, or that of
// what was sent.
func (kind Kind) Key(k Keys, stream, processor, id string, n int) string {
	names := []string{stream, processor, id}
	switch kind.Per {
	case PerApp:
		names = nil
	case PerStream, PerPartition:
		names = names[:1]
	case PerProcessor, PerOwner, PerTable:
		names = names[:2]
	}
	if kind.Admin {
		names = append(names, "admin")
	}
	p := Part{Kind: kind.Name, Names: strings.Join(names, "."), Partition: -1}
	if kind.Per.partitioned() {
		p.Partition = n
	}
	if kind.ID {
		p.ID = id
	}
	return k.Name(p)
}
