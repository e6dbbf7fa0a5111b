package main

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestAPauseClosesASession(t *testing.T) {
	s := register(runnel.New("site", nil))
	began := time.UnixMilli(1_700_000_000_000)
	at := func(d time.Duration) time.Time { return began.Add(d) }

	script := runneltest.Events(t, s.clicks, "sessions").
		Appended(at(0)).Records(Click{"ada", "/"}, Click{"bob", "/"}).
		Appended(at(pause - 1*time.Millisecond)).Records(Click{"ada", "/hats"}).
		Appended(at(2*pause - 2*time.Millisecond)).Records(Click{"ada", "/pay"}). // less than a pause later, twice
		Appended(at(4 * pause)).Records(Click{"ada", "/"})
	got := script.Run()

	closed := runneltest.Emitted(t, got, s.sessions)
	if got.Err != nil || len(closed) != 1 || !same(closed[0], Session{"ada", 3, began, at(2*pause - 2*time.Millisecond)}) {
		t.Errorf("closed %v, %v", closed, got.Err)
	}
	open := runneltest.Rows(t, got, s.open)
	if len(open) != 2 || !same(open["ada"], Session{"ada", 1, at(4 * pause), at(4 * pause)}) || !same(open["bob"], Session{"bob", 1, began, began}) {
		t.Errorf("open %v", open)
	}
}

// A session that was open when its owner stopped goes on with the next one.
func TestASessionGoesOn(t *testing.T) {
	s := register(runnel.New("site", nil))
	began := time.UnixMilli(1_700_000_000_000)
	script := runneltest.Events(t, s.clicks, "sessions").Appended(began.Add(time.Second)).Records(Click{"ada", "/hats"})
	got := runneltest.SetRows(script, s.open, map[string]Session{"ada": {"ada", 5, began.Add(-time.Hour), began}}).Run()
	row := runneltest.Rows(t, got, s.open)["ada"]
	if !same(row, Session{"ada", 6, began.Add(-time.Hour), began.Add(time.Second)}) || runneltest.Emitted(t, got, s.sessions) != nil {
		t.Errorf("open is %v", row)
	}
}

// same reports whether sessions are equal; the time zone of an encoded time is lost.
func same(a, b Session) bool {
	return a.User == b.User && a.Clicks == b.Clicks && a.First.Equal(b.First) && a.Last.Equal(b.Last)
}
