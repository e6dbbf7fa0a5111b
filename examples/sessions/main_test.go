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

	got := runneltest.Events(t, s.clicks, "sessions").
		Appended(at(0)).Records(Click{"ada", "/"}, Click{"bob", "/"}).
		Appended(at(pause - 1*time.Millisecond)).Records(Click{"ada", "/hats"}).
		Appended(at(2*pause - 2*time.Millisecond)).Records(Click{"ada", "/pay"}). // less than a pause later, twice
		Appended(at(4 * pause)).Records(Click{"ada", "/"}).
		Quiet(at(5*pause - 1*time.Millisecond)).Run()

	closed := runneltest.Emitted(t, got, s.sessions)
	if got.Err != nil || len(closed) != 2 || !same(closed[0], Session{"bob", 1, began, began}) || !same(closed[1], Session{"ada", 3, began, at(2*pause - 2*time.Millisecond)}) {
		t.Errorf("closed %v, %v", closed, got.Err)
	}
	if open := runneltest.Rows(t, got, s.open); len(open) != 1 || !same(open["ada"], Session{"ada", 1, at(4 * pause), at(4 * pause)}) {
		t.Errorf("open %v", open)
	}
}

// A session that was open when its owner stopped goes on with the next one, and ends without another click.
func TestASessionGoesOn(t *testing.T) {
	s := register(runnel.New("site", nil))
	began := time.UnixMilli(1_700_000_000_000)
	script := runneltest.Events(t, s.clicks, "sessions").Appended(began.Add(time.Second)).Records(Click{"ada", "/hats"}).Quiet(began.Add(time.Second + pause))
	got := runneltest.SetRows(script, s.open, map[string]Session{"ada": {"ada", 5, began.Add(-time.Hour), began}}).Run()
	closed := runneltest.Emitted(t, got, s.sessions)
	if len(closed) != 1 || !same(closed[0], Session{"ada", 6, began.Add(-time.Hour), began.Add(time.Second)}) || len(runneltest.Rows(t, got, s.open)) > 0 {
		t.Errorf("closed %v", closed)
	}
}

// same reports whether sessions are equal; the time zone of an encoded time is lost.
func same(a, b Session) bool {
	return a.User == b.User && a.Clicks == b.Clicks && a.First.Equal(b.First) && a.Last.Equal(b.Last)
}
