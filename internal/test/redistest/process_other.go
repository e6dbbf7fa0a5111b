//go:build !linux

package redistest

import (
	"os"
	"os/exec"
	"time"
)

// startTied starts cmd in the process group of the test, so that an interrupt from the terminal ends both.
func startTied(cmd *exec.Cmd) error { return cmd.Start() }

func killGroup(p *os.Process) { _ = p.Kill() }

// putFirst does nothing: what it does on Linux is not known here.
func (s *Server) putFirst() {}

// scheduled returns nothing: what it returns on Linux is not known here.
func (s *Server) scheduled() (ran, waited time.Duration) { return 0, 0 }
