package redistest

import "golang.org/x/sys/unix"

// FillDisk makes every further write to a file fail, as on a full disk, until FreeDisk or the next start, and says
// whether it can on this system. The server must have been started by StartLimited: one that was not is ended by the
// first such write. With appendfsync always the server ends itself at the first one, too.
func (s *Server) FillDisk() bool {
	s.t.Helper()
	s.limitFiles(1)
	return true
}

// FreeDisk ends what FillDisk did.
func (s *Server) FreeDisk() {
	s.t.Helper()
	s.limitFiles(0)
}

// limitFiles sets the soft limit on the size of files, 0 for the hard one.
func (s *Server) limitFiles(bytes uint64) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var limit unix.Rlimit
	err := unix.Prlimit(s.proc.pid(), unix.RLIMIT_FSIZE, nil, &limit)
	if err == nil {
		limit.Cur = limit.Max
		if bytes > 0 {
			limit.Cur = bytes
		}
		err = unix.Prlimit(s.proc.pid(), unix.RLIMIT_FSIZE, &limit, nil)
	}
	if err != nil {
		s.t.Fatalf("limit the files of redis-server %s: %v", s.Addr(), err)
	}
}
