//go:build race

package model

// raced says that the race detector is on, which makes each state several times as
// dear: then only the smallest bounds are explored.
const raced = true
