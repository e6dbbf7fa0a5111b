package proc

import (
	"os/exec"
	"syscall"
)

// Tie has the kernel kill the process of cmd, which was not started yet, when this one dies.
func Tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
