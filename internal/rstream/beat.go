package rstream

import (
	"encoding/json"
	"time"
)

// A Beat is what a heartbeat tells of its executor.
type Beat struct {
	// Rules is the generation of the rules that is in full effect: of what it
	// holds back nothing runs and nothing can begin to.
	Rules int64
	// Running says of partitions whose function has been running for long since
	// when it has, by the worker's clock.
	Running map[int]time.Time
}

type beatJSON struct {
	Version int           `json:"v"`
	Rules   int64         `json:"rules"`
	Running map[int]int64 `json:"running,omitempty"` // ms
}

// Encode is the inverse of ParseBeat.
func (b Beat) Encode() string {
	j := beatJSON{Version: 1, Rules: b.Rules}
	if len(b.Running) > 0 {
		j.Running = map[int]int64{}
	}
	for partition, since := range b.Running {
		j.Running[partition] = since.UnixMilli()
	}
	text, _ := json.Marshal(j) // of numbers only
	return string(text)
}

// ParseBeat reads a heartbeat. One of a form that it does not know tells nothing:
// that it is there is what counts.
func ParseBeat(value string) Beat {
	var j beatJSON
	if json.Unmarshal([]byte(value), &j) != nil || j.Version != 1 {
		return Beat{}
	}
	b := Beat{Rules: j.Rules}
	if len(j.Running) > 0 {
		b.Running = map[int]time.Time{}
	}
	for partition, ms := range j.Running {
		b.Running[partition] = MomentOf(ms)
	}
	return b
}
