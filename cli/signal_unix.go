//go:build unix

package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// stopSignals are those that end a command in order. The end of a terminal (SIGHUP) is one, unless
// the process was told to outlive it (nohup).
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// detach keeps the terminal's signals from the child: it would get each twice.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func forward(p *os.Process, sig os.Signal) { _ = p.Signal(sig) } // a child that has ended needs none

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
