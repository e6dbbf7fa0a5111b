//go:build unix

package cli

import (
	"os"
	"os/exec"
	"syscall"
)

var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// detach keeps the terminal's signals from the child: it would get each twice.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func forward(p *os.Process, sig os.Signal) { _ = p.Signal(sig) } // a child that has ended needs none

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
