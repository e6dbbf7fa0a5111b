//go:build !linux

package redistest

// FillDisk returns false: on this system nothing sets another process's limits.
func (s *Server) FillDisk() bool { return false }

// FreeDisk does nothing on this system.
func (s *Server) FreeDisk() {}
