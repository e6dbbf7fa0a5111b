//go:build !unix

package cli

import (
	"os"
	"os/exec"
)

func stopSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// detach does nothing: the console gives its interrupt to the child itself.
func detach(*exec.Cmd) {}

func forward(*os.Process, os.Signal) {}

func terminate(p *os.Process) error { return p.Kill() }
