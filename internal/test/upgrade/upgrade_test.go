package upgrade

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// workers is how many there are, but for the moments at which one more takes the place of another.
const workers = 3

func TestVersionsShareAnApp(t *testing.T) {
	tier.Slow(t)
	programs := programs(t)
	for _, tt := range []struct {
		name string
		play func(s *scene)
	}{
		{"old, new, old", func(s *scene) { s.play(older) }},
		{"new, old, new", func(s *scene) { s.play(newer) }},
		{"unreadable by the old", (*scene).playUnreadable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, programs)
			tt.play(s)
			s.judge()
		})
	}
}

// play replaces workers by those of the other version and back, under load. The version first
// declares the stream.
func (s *scene) play(first string) {
	parked := s.senders(first, first)
	var team []*process
	for range workers {
		team = append(team, s.worker(first))
	}
	team = s.replace(team, other(first), parked)
	back := s.senders(other(first), other(first))
	s.settle(parked)
	team = s.replace(team, first, back)
	s.settle(back)
	s.end(team...)
}

// playUnreadable has the new version park events of keys that are no UTF-8, or longer than 1 KiB.
// The old version refuses their states: their partitions stand still while it owns them, and
// others do not.
func (s *scene) playUnreadable() {
	senders := s.senders(older, "nobody")
	stubborn := s.start("stubborn", newer, "work")
	s.await("parked events of both senders", func() bool { return s.tally.refuses(newer, senders) })
	old := s.worker(older)
	s.end(stubborn)
	s.await("a state that the old worker cannot read, and events that it can", func() bool {
		log, err := os.ReadFile(old.log)
		return err == nil && strings.Contains(string(log), "has version 2, not 1: written by another release") && s.tally.serves(old)
	})
	own := s.worker(newer)
	s.end(old)
	s.settle(senders)
	s.end(own)
}

// replace replaces workers by those of another version, one by one, once the former have parked
// events of each sender that only the others complete. One of them is killed.
func (s *scene) replace(team []*process, version string, senders []*process) (next []*process) {
	s.t.Helper()
	s.await("parked events of both senders", func() bool { return s.tally.refuses(other(version), senders) })
	for i, p := range team {
		own := s.worker(version)
		s.await("events of both versions at both workers", func() bool { return s.tally.serves(p) && s.tally.serves(own) })
		next = append(next, own)
		if i == 1 {
			s.kill(p)
		} else {
			s.end(p)
		}
	}
	return next
}

// settle ends senders and waits until all that they sent is completed.
func (s *scene) settle(senders []*process) {
	s.t.Helper()
	s.end(senders...)
	s.await("completion of all events", func() bool { return s.tally.undone(senders) == 0 })
}

// judge looks for dead letters and parked events, and judges what all processes wrote down.
func (s *scene) judge() {
	app := runnel.New("upgrade", &runnel.Options{RedisURL: s.srv.URL()})
	defer app.Close()
	letters, err := admin.New(app).DeadLetters("jobs", "check").List(s.t.Context(), nil)
	if err != nil || len(letters) > 0 {
		s.t.Errorf("%d dead letters, %v: %v", len(letters), err, letters)
	}
	parked, err := admin.New(app).Parked("jobs", "check").List(s.t.Context(), nil)
	if err != nil || len(parked) > 0 {
		s.t.Errorf("%d events are parked, %v: %v", len(parked), err, parked)
	}
	for _, p := range s.killed {
		again := s.tally.repeats(p)
		s.t.Logf("events that %s had completed and others completed again, by partition: %v", p.name, again)
		for partition, n := range again {
			if n > prefetch {
				s.t.Errorf("%d events of partition %d that %s had completed were completed again, more than the %d that it may have had in flight", n, partition, p.name, prefetch)
			}
		}
	}
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.ndjson"))
	if err != nil {
		s.t.Fatal(err)
	}
	records, err := history.Read(paths...)
	if err != nil {
		s.t.Fatal(err)
	}
	report := history.Check(records, history.Options{Processors: []string{"check"}, Lanes: history.LaneKey})
	s.t.Log(report)
	if !report.OK {
		s.t.Error("the history breaks a promise")
	}
}
