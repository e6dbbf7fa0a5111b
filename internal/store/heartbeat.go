package store

import (
	"encoding/json"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/rules"
)

// A HeartbeatInfo is the content of an executor's heartbeat.
type HeartbeatInfo struct {
	// Rules are the generations of the rules that are in full effect: nothing that they
	// hold back runs or can start.
	Rules rules.Generations
	// NotReading says of partitions whose reads have failed for a while since when they
	// have, by the worker's clock.
	NotReading map[int]time.Time
	// Running says of partitions whose function has been running for long since
	// when it has, by the worker's clock.
	Running map[int]time.Time
}

type heartbeatJSON struct {
	Version    int           `json:"v"`
	Rules      int64         `json:"rules"`
	Blocks     *int64        `json:"blocks"`                // earlier releases do not tell it
	Running    map[int]int64 `json:"running,omitempty"`     // ms
	NotReading map[int]int64 `json:"not_reading,omitempty"` // ms
}

// Encode is the inverse of ParseBeat.
func (b HeartbeatInfo) Encode() string {
	j := heartbeatJSON{Version: 1, Rules: b.Rules.Pauses, Blocks: &b.Rules.Blocks, Running: millisOf(b.Running), NotReading: millisOf(b.NotReading)}
	text, _ := json.Marshal(j) // of numbers only
	return string(text)
}

// ParseHeartbeat parses a heartbeat. A heartbeat of an unknown form has no information,
// but counts as a heartbeat.
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
