//go:build !unix

package schedule

import "os/exec"

// ownGroup does nothing: there are no process groups here.
func ownGroup(*exec.Cmd) {}

// signalGroup ends a command.
func signalGroup(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }
