package store

import (
	"encoding/json"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/rules"
)

// A HeartbeatInfo is the content of an executor's heartbeat.
type HeartbeatInfo struct {
	// Rules are the generations in full effect: nothing that they hold back runs or can start.
	Rules rules.Generations
	// NotReading is since when, by the worker's clock, reads of a partition keep failing.
	NotReading map[int]time.Time
	// Running is since when, by the worker's clock, a partition's function has been running long.
	Running map[int]time.Time
}

type heartbeatJSON struct {
	Version    int           `json:"v"`
	Rules      int64         `json:"rules"`
	Blocks     *int64        `json:"blocks"`                // earlier releases do not tell it
	Running    map[int]int64 `json:"running,omitempty"`     // ms
	NotReading map[int]int64 `json:"not_reading,omitempty"` // ms
}

// Encode is the inverse of ParseHeartbeat.
func (b HeartbeatInfo) Encode() string {
	j := heartbeatJSON{Version: 1, Rules: b.Rules.Pauses, Blocks: &b.Rules.Blocks, Running: millisOf(b.Running), NotReading: millisOf(b.NotReading)}
	text, _ := json.Marshal(j) // of numbers only
	return string(text)
}

// ParseHeartbeat parses a heartbeat; one of an unknown form counts, without any information.
func ParseHeartbeat(value string) HeartbeatInfo {
	var j heartbeatJSON
	if json.Unmarshal([]byte(value), &j) != nil || j.Version != 1 {
		return HeartbeatInfo{}
	}
	known := rules.Generations{Pauses: j.Rules, Blocks: -1}
	if j.Blocks != nil {
		known.Blocks = *j.Blocks
	}
	return HeartbeatInfo{Rules: known, Running: momentsOf(j.Running), NotReading: momentsOf(j.NotReading)}
}

func millisOf(moments map[int]time.Time) map[int]int64 {
	out := make(map[int]int64, len(moments))
	for partition, at := range moments {
		out[partition] = at.UnixMilli()
	}
	return out
}

func momentsOf(millis map[int]int64) map[int]time.Time {
	out := make(map[int]time.Time, len(millis))
	for partition, ms := range millis {
		out[partition] = entryid.MomentOf(ms)
	}
	return out
}
