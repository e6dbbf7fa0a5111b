package redistest

import (
	"os/exec"
	"time"
)

// process is a started child; done is closed once it has ended and been reaped.
type process struct {
	cmd    *exec.Cmd
	killed bool // by kill
	done   chan struct{}
	err    error // how it ended; read it after done
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	// A forked child of the server may hold the pipe of its log open for a while.
	cmd.WaitDelay = time.Second
	if err := startTied(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process at once, frozen or not, and returns when it is gone.
func (p *process) kill() {
	if !p.ended() {
		p.killed = true
		killGroup(p.cmd.Process)
		<-p.done
	}
}
