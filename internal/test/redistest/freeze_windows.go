package redistest

// Freeze fails the test: this system cannot freeze a process.
func (s *Server) Freeze() {
	s.t.Helper()
	s.t.Fatalf("freeze redis-server %s: not possible on windows", s.Addr())
}

// Thaw fails the test, as Freeze does.
func (s *Server) Thaw() {
	s.t.Helper()
	s.t.Fatalf("thaw redis-server %s: not possible on windows", s.Addr())
}
