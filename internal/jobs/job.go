package jobs

import (
	"fmt"
	"time"
)

// A Job is triggers, and tasks that run at their logical times. Its JSON is how it is stored; files have the same
// fields.
type Job struct {
	Name        string    `json:"job"`
	Description string    `json:"description,omitempty"`
	Triggers    []Trigger `json:"triggers,omitempty"`
	Tasks       []Task    `json:"tasks"`
}

// A Trigger emits a token for each of its logical times: Start + k·Every, or those of the crontab line.
type Trigger struct {
	Name     string    `json:"name"`
	Start    time.Time `json:"start,omitzero"` // logical times from here on; without it those of a line from when it was first applied
	End      time.Time `json:"end,omitzero"`   // and before this
	Every    Duration  `json:"every,omitzero"` // of absolute time, whole milliseconds
	Cron     string    `json:"cron,omitempty"` // five fields, or "@daily" and the like
	TimeZone string    `json:"timezone,omitempty"`
	Offset   Duration  `json:"offset,omitzero"` // fires so much behind the logical time; negative: before it

	CatchUp    CatchUp  `json:"catchup,omitempty"`
	MaxCatchUp int      `json:"max_catchup,omitempty"` // of missed times the latest so many; 0: defaultCatchUp
	Late       Duration `json:"late,omitzero"`         // later than this a time is missed for good; 0: never, with CatchUpNone a minute
}

// A Task runs at a logical time when its sources have ended at that time. One of Handler, Exec and Shell says what it does;
// without any it is a join, which succeeds at once.
type Task struct {
	Name      string   `json:"name"`
	After     []string `json:"after,omitempty"`      // sources that have to succeed, or with "?" to end
	OnFailure []string `json:"on_failure,omitempty"` // tasks each of whose failures fires this one; not together with After
	Need      int      `json:"need,omitempty"`       // how many of After; 0: all
	Handler   string   `json:"do,omitempty"`         // name of a function of the app
	Exec      []string `json:"exec,omitempty"`       // a command with its arguments
	Shell     string   `json:"shell,omitempty"`      // a command for /bin/sh -c
	Retry     *Retry   `json:"retry,omitempty"`      // nil: one attempt
	Timeout   Duration `json:"timeout,omitzero"`     // of one attempt; 0: that of the scheduler
	Priority  Priority `json:"priority,omitempty"`
	Limit     int      `json:"limit,omitempty"` // runs at once in the app, over all times; 0: any
}

// A Retry is when a task is attempted again; zero fields are the defaults of runnel.Retry.
type Retry struct {
	Max        int      `json:"max"`
	MinBackoff Duration `json:"min_backoff,omitzero"`
	MaxBackoff Duration `json:"max_backoff,omitzero"`
	Factor     float64  `json:"factor,omitempty"`
	Jitter     float64  `json:"jitter,omitempty"`
}

// A CatchUp is what becomes of times that are missed: several were due when a worker looked.
type CatchUp string

const (
	CatchUpEarliest CatchUp = "earliest" // they run, the oldest first; the default
	CatchUpLatest   CatchUp = "latest"   // they run, the newest first
	CatchUpRandom   CatchUp = "random"   // they run in an order that is the same for the same trigger
	CatchUpNone     CatchUp = "none"     // they are left out
)

// A Priority is the order in which runs that wait are started.
type Priority string

const (
	PriorityHigh     Priority = "high"
	PriorityNormal   Priority = "normal" // the default
	PriorityLow      Priority = "low"
	PriorityBackfill Priority = "backfill" // also that of missed times
)

// A Duration is written as Go writes it: "90s", "1h30m".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText makes it a text in JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if *d = Duration(parsed); err != nil {
		err = fmt.Errorf("%q is no duration, such as 90s or 1h30m", text)
	}
	return err
}
