package schedule

import (
	"cmp"
	"context"
)

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

// Freeze is the first half of an operation on cells, by partition: it makes void what they have. It returns by task the generation that its
// next firing has, none where a later operation was there before or the task is not. It may be repeated.
func (s *Scheduler) Freeze(ctx context.Context, operation int64, to string, by map[int][]Place) (generations map[string]int64, err error) {
	generations = map[string]int64{}
	ask := func(some []Place) any { return obj{"operation": operation, "to": to, "places": some} }
	inTrip(ctx, s, "freeze", by, ask, func(some []Place, got []int64, failed error) {
		for i, g := range got {
			if g > 0 {
				generations[some[i].Task] = g
			}
		}
		err = cmp.Or(failed, err)
	})
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
func (s *Scheduler) Thaw(ctx context.Context, operation, priority int64, by map[int][]Thaw) (err error) {
	ask := func(some []Thaw) any { return obj{"operation": operation, "priority": priority, "cells": some} }
	inTrip(ctx, s, "thaw", by, ask, func(_ []Thaw, _ any, failed error) { err = cmp.Or(failed, err) })
	return err
}
