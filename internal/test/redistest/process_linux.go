package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// starter runs what it is sent on one thread that never ends. The kernel sends Pdeathsig when the *thread* that
// started a child ends, and Go ends a thread whose locked goroutine returns: a test that does so must not kill the
// servers of others.
var starter = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// startTied starts cmd in a process group of its own and has the kernel kill it when this process dies.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	starter() <- func() { result <- cmd.Start() }
	return <-result
}

// killGroup kills p and the children it forked to save or to sync replicas.
func killGroup(p *os.Process) {
	if syscall.Kill(-p.Pid, syscall.SIGKILL) != nil {
		_ = p.Kill()
	}
}

// putFirst has the server's main thread run before others that want a core, where that is permitted.
func (s *Server) putFirst() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, s.PID(), -20) }

// scheduled returns for how long the server's main thread has run, and for how long it could have run while others had
// the core.
func (s *Server) scheduled() (ran, waited time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.PID()))
	_, _ = fmt.Sscan(string(text), &ran, &waited) // 0 where the kernel does not tell
	return ran, waited
}
