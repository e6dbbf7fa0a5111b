//go:build !linux

package testredis

import (
	"os"
	"os/exec"
)

// startTied starts cmd in the process group of the test, so that an interrupt from the terminal ends both.
func startTied(cmd *exec.Cmd) error { return cmd.Start() }

func killGroup(p *os.Process) { _ = p.Kill() }
