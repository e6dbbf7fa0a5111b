package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

// limited is a response that stores its write deadline.
type limited struct {
	*httptest.ResponseRecorder
	at func(until time.Time)
}

func (l limited) SetWriteDeadline(until time.Time) error { l.at(until); return nil }

// Between two events a response has no write deadline: HTTP/2 ends it at the deadline, even while
// nothing is written. During a write it has one.
func TestSilenceIsNoEnd(t *testing.T) {
	var until []time.Time
	w := limited{httptest.NewRecorder(), func(at time.Time) { until = append(until, at) }}
	s := &sender{w: w, rc: http.NewResponseController(w)}
	if err := s.event("sample", []byte("{}")); err != nil || !w.Flushed {
		t.Fatal(err)
	}
	if len(until) != 2 || until[0].IsZero() || !until[1].IsZero() {
		t.Errorf("limits %v", until)
	}
}

func TestRatesAfterTrouble(t *testing.T) {
	h := newHub(minEvery, nil)
	rate := 2.5
	sample := func() *inspect.Sample {
		s := lookOf(0, 0, "alpha")
		s.Rates[0].Appended = &rate
		return s
	}
	began := time.Now().Add(-time.Minute)
	h.publish(began, sample(), nil)
	for at := began; at.Before(time.Now()); at = at.Add(time.Second) {
		h.publish(at, nil, errors.New("away"))
	}
	h.took = 0
	h.publish(time.Now(), sample(), nil)
	if f, _ := h.current(); f.shown("").Streams[0].Rate != nil {
		t.Errorf("a rate of %v over a minute", *f.shown("").Streams[0].Rate)
	}
}

// Watchers that leave before the look is over cause no more looks.
func TestComingAndGoingIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		h := newHub(time.Hour, func(ctx context.Context) (*inspect.Sample, error) {
			looks++
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			var led sync.WaitGroup
			led.Go(func() { h.lead(ctx) })
			synctest.Wait()
			cancel()
			led.Wait()
		}
		if looks != 1 {
			t.Errorf("%d looks, want 1", looks)
		}
	})
}

// After a failover Redis' clock may be behind: times still only grow, and the past is kept.
func TestTheClockIsSetBack(t *testing.T) {
	var p past
	for _, at := range []time.Duration{0, 2, 4, 6, 3, 5} {
		p.add(lookOf(at*time.Second, int64(at), "alpha"))
	}
	m := p.memory()
	if got := fmt.Sprint(m.At[1]-m.At[0], m.At[2]-m.At[1], m.At[3]-m.At[2], len(m.At)); got != "2000 1000 2000 4" {
		t.Errorf("%v: %s", m.At, got)
	}
}

// A handler may outlive its servers, and forgets them.
func TestServersAreForgotten(t *testing.T) {
	var e ends
	ask := func() {
		r := httptest.NewRequest(http.MethodGet, "/api/live", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{Handler: http.NotFoundHandler()}))
		if a, b := e.of(r), e.of(r); a == nil || a != b {
			t.Error("a server has no channel, or two")
		}
	}
	for range 10 {
		ask()
	}
	eventually(t, "the servers to be forgotten", func() bool {
		runtime.GC()
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.servers) == 0
	})
}
