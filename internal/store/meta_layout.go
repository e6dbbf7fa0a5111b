package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MarkField is the field of Keys.Streams that exists if the app's keys are being moved to other
// names, or were. No stream has this name.
const MarkField = "@layout"

// States of a Mark.
const (
	MarkMoving  = "moving"  // they are on their way
	MarkMoved   = "moved"   // they are there, under the names To, at Target if that is not ""
	MarkClaimed = "claimed" // they are on their way to here, from another server
	MarkArrived = "arrived" // they came from another server
)

// A Mark describes a move of all keys of an app to the names of another layout; see
// internal/keymigrate. A process that finds its keys being moved, or moved away, refuses to work.
type Mark struct {
	Version int    `json:"v"`
	State   string `json:"state"`
	ID      string `json:"id"`               // of the move
	To      string `json:"to"`               // layout
	Source  string `json:"source,omitempty"` // address of the server that a claim is for
	Target  string `json:"target,omitempty"` // address of another server, "" for the same
	At      int64  `json:"at"`               // when it began, in ms
}

// markVersion is the version of a stored Mark.
const markVersion = 1

// ParseMark parses a stored mark, "" for the zero one.
func ParseMark(data string) (Mark, error) {
	if data == "" {
		return Mark{}, nil
	}
	var m Mark
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		return Mark{}, fmt.Errorf("mark of stream move-layout is not readable: %w", err)
	}
	if m.Version != markVersion {
		return Mark{}, fmt.Errorf("mark of stream move-layout has a version other than %d: written by another release", markVersion)
	}
	return m, nil
}

// Encode returns the mark as it is stored.
func (m Mark) Encode() string {
	m.Version = markVersion
	data, _ := json.Marshal(m) // of strings and numbers
	return string(data)
}

// Layout returns the Layout of metadata while there is such a mark.
func (m Mark) Layout() string {
	switch {
	case m.State == MarkMoved && m.Target != "":
		return movedTo + m.Target
	case m.State == MarkMoved:
		return m.To
	}
	return MarkMoving
}

const movedTo = "moved to "

// refused returns an error if the metadata, or a mark, has another layout than this client.
func (c MetaStore) refused(stream, stored string) error {
	if own := c.keys.Layout; stored != "" && stored != own {
		return &MetaConflictError{Stream: stream, Field: layoutSetting, Stored: stored, Own: own}
	}
	return nil
}

const layoutSetting = "key layout"

// whyLayout explains a stored layout that is none, "" if it is one.
func whyLayout(stream, stored string) string {
	const how = "`runnel stream move-layout`"
	switch addr, away := strings.CutPrefix(stored, movedTo); {
	case away:
		return fmt.Sprintf("stream %s: its keys were moved to the redis at %s: use that one (%s --back, with the app stopped, ends this here)", stream, addr, how)
	case stored == MarkMoving:
		return fmt.Sprintf("stream %s: its keys are being moved to the names of another key layout: run %s until it is done", stream, how)
	}
	return ""
}

// marked returns an error if a mark keeps the app from working under this client's names.
func (c MetaStore) marked(stream, data string) error {
	m, err := ParseMark(data)
	if err != nil || m.State == "" || m.State == MarkArrived {
		return err
	}
	return c.refused(stream, m.Layout())
}

// checkLayout refuses a stream that exists under the other key names.
func (c MetaStore) checkLayout(ctx context.Context, stream string) error {
	other := c.keys.Other()
	stored, err := c.load(ctx, other.Meta(stream))
	if err != nil || stored == nil {
		return err
	}
	layout := other.Layout
	if m, err := parseMeta(stored); err == nil && whyLayout(stream, m.Layout) != "" {
		layout = m.Layout
	}
	return c.refused(stream, layout)
}

// streamNames returns the fields of Keys.Streams that name streams, sorted.
func streamNames(fields []string) []string {
	fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, "@") })
	slices.Sort(fields)
	return fields
}
