package worker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Only reads that are tried can fail: the time counts since the first failure in a row.
func TestOnlyReadsThatAreWantedFail(t *testing.T) {
	broken := errors.New("no connection")
	tests := []struct {
		name    string
		between func(*sight)
		want    time.Duration
	}{
		{"one after the other", func(*sight) {}, 20 * time.Second},
		{"with nothing to read between them", func(s *sight) { s.clear(false) }, 0},
		{"with one between them that worked", func(s *sight) { s.clear(true) }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s sight
				s.fails(broken)
				time.Sleep(10 * time.Second)
				tt.between(&s)
				time.Sleep(10 * time.Second)
				if got := s.fails(broken); got != tt.want {
					t.Errorf("failing for %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestHeartbeatsReportThatReadsFail(t *testing.T) {
	var s sight
	if _, _, reported := s.state(); s.clear(true) || reported {
		t.Error("a sight that never failed is reported")
	}
	s.fails(errors.New("no connection"))
	if _, _, reported := s.state(); reported {
		t.Error("it is reported at once")
	}
	if !s.report() || s.report() {
		t.Error("it should be reported once")
	}
	if since, err, reported := s.state(); since == 0 || err == nil || !reported {
		t.Errorf("since %d, error %v, reported %t", since, err, reported)
	}
	if !s.clear(true) || s.clear(true) {
		t.Error("that it works again should be reported once")
	}
}
