package conformance_test

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// The worker dies while the memory of the server is full. Another one must take over, since only
// processing and trimming free memory.
func TestTakeoverWithFullMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	s := openShop(t, srv.URL(), 5*time.Millisecond)
	s.worker.stop()
	waiting := s.fill(rdb, 200)

	s.worker = s.start(srv.URL(), "w2")
	ready(t, 30*time.Second, s.worker)
	await(t, "what is there to be processed", 30*time.Second, func() bool { return s.tr.completed() == waiting+4 })
	awaitRest(t, srv, 4, 1)
	setMemory(t, rdb, "0")
	s.mustRound()
	s.resumed(time.Now())
	if report := s.close(srv); report.Repeats > 0 {
		t.Errorf("%d events were processed twice", report.Repeats)
	}
}
