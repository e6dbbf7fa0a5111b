//go:build unix

package redistest

import "syscall"

// Freeze stops the process with SIGSTOP: connections stay open, nothing answers.
func (s *Server) Freeze() {
	s.t.Helper()
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		s.t.Fatalf("freeze redis-server %s: %v", s.Addr(), err)
	}
}

// Thaw lets a frozen process go on.
func (s *Server) Thaw() {
	s.t.Helper()
	if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
		s.t.Fatalf("thaw redis-server %s: %v", s.Addr(), err)
	}
}
