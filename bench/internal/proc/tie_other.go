//go:build !linux

package proc

import "os/exec"

// Tie does nothing where a process cannot be tied to the one that starts it.
func Tie(*exec.Cmd) {}
