package schedule

import "context"

// A Place is a task at a logical time, in ms since 1970.
type Place struct {
	Task string `json:"task"`
	Time int64  `json:"t,string"` // numbers of answers have 14 digits
}

// What becomes of frozen cells.
const (
	Cleared   = "cleared"
	Cancelled = "cancelled" // what is not over alone, and without Thaw
)

// Freeze is the first half of an operation on cells of a partition, at most PerCall: it makes void what they have. It returns of each the
// generation that its next firing has, 0 where a later operation was there before or the task is not. It may be repeated.
func (s *Scheduler) Freeze(ctx context.Context, n int, operation int64, to string, places []Place) (generations []int64, err error) {
	err = s.do(ctx, "freeze", n, obj{"operation": operation, "to": to, "places": places}, &generations)
	return generations, err
}

// A Thaw is the second half of a re-run for one cell.
type Thaw struct {
	Place
	Fires  bool             `json:"fires"`           // by itself
	Silent bool             `json:"silent"`          // its end emits nothing
	Waits  map[string]int64 `json:"waits,omitempty"` // for this generation of a source
}

// Thaw is the second half, with the priority of the runs. It may be repeated.
func (s *Scheduler) Thaw(ctx context.Context, n int, operation, priority int64, thaws []Thaw) error {
	return s.do(ctx, "thaw", n, obj{"operation": operation, "priority": priority, "cells": thaws}, nil)
}
