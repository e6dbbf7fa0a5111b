//go:build !linux

package redistest

// FillDisk says that a disk cannot be filled on this system: nothing here sets another process's limits.
func (s *Server) FillDisk() bool { return false }

// FreeDisk does nothing on this system.
func (s *Server) FreeDisk() {}
