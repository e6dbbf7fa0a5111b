package runneltest_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

// lateStorm is a storm in which some parcels are sent for later, and some of these
// are cancelled or rescheduled.
type lateStorm struct {
	*storm

	mu        sync.Mutex
	delayed   map[string]bool // keys of the delayed parcels; each has a key of its own
	cancelled map[string]bool // keys of the cancelled ones among them
}

// TestSimDelayedSeeds loses and doubles no delayed event, and moves none early or
// out of order, whatever becomes of the workers that move them.
func TestSimDelayedSeeds(t *testing.T) {
	tier.Slow(t)
	eachSeed(t, max(*seeds/8, 2), func(storm *storm, _ uint64) {
		s := &lateStorm{storm: storm, delayed: map[string]bool{}, cancelled: map[string]bool{}}
		s.more = s.waiting
		runneltest.Sim(s.t, s.build, func(c *runneltest.Cluster) {
			s.c = c
			for n := range 2 {
				s.others.Go(func() { s.delay(n) })
			}
			s.run(c)
			s.collect()
		})
		s.judge()
	})
}

// delay sends parcels for later as long as the storm lasts.
func (s *lateStorm) delay(n int) {
	app, parcels := s.declare(s.c.Options(fmt.Sprint("late", n)))
	defer app.Close()
	ctx := s.c.Context()
	for i, end := 0, time.Now().Add(stormLasts); time.Now().Before(end); i++ {
		time.Sleep(rand.N(stormPause / 2))
		key := fmt.Sprintf("late-%d-%d", n, i)
		sent, err := parcels.SendAfter(ctx, rand.N(4*time.Second), parcel{key, 1})
		if err != nil {
			s.t.Errorf("delay: %v", err)
			return
		}
		s.note(s.delayed, key)
		switch rand.IntN(4) {
		case 0:
			time.Sleep(rand.N(time.Second))
			ok, err := parcels.Cancel(ctx, sent[0].ID)
			if err != nil {
				s.t.Errorf("cancel: %v", err)
			}
			if ok {
				s.note(s.cancelled, key)
			}
		case 1:
			if _, err := parcels.Reschedule(ctx, sent[0].ID, time.Now().Add(rand.N(2*time.Second))); err != nil {
				s.t.Errorf("reschedule: %v", err)
			}
		}
	}
}

func (s *lateStorm) note(in map[string]bool, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[key] = true
}

// waiting describes what still waits for its time, "" for nothing.
func (s *lateStorm) waiting() string {
	for p := range stormParts {
		key := fmt.Sprintf("__due:sim.parcels.%d", p)
		if n, err := s.c.Redis().ZCard(s.c.Context(), key).Result(); err != nil || n > 0 {
			return fmt.Sprintf("%s has %d events, %v", key, n, err)
		}
	}
	return ""
}

// collect tells the judge where delayed parcels were appended, and checks that all
// of them were, once, in time and in order.
func (s *lateStorm) collect() {
	moved := map[string]int{}
	for p := range stormParts {
		entries, err := s.c.Redis().XRange(s.c.Context(), partitionKey(p), "-", "+").Result()
		if err != nil {
			s.t.Fatal(err)
		}
		last := int64(0)
		for _, e := range entries {
			due, sent := stamp(e.Values["__at"]), stamp(e.Values["__sent"])
			if due == 0 {
				continue
			}
			var got parcel
			data, _ := e.Values["data"].(string)
			if err := codec.MsgPack.Decode([]byte(data), &got); err != nil {
				s.t.Fatal(err)
			}
			moved[got.Key]++
			if err := s.log.As("late").Sent("parcels", p, e.ID, got.Key, got.Seq); err != nil {
				s.t.Error(err)
			}
			ms, _, _ := strings.Cut(e.ID, "-")
			appended := stamp(ms)
			if appended < due || sent < due && due < last {
				s.t.Errorf("partition %d: %s was sent %d, due %d, appended as %s behind one due %d", p, got.Key, sent, due, e.ID, last)
			}
			last = max(last, due)
		}
	}
	for key := range s.delayed {
		want := 1
		if s.cancelled[key] {
			want = 0
		}
		if moved[key] != want {
			s.t.Errorf("%s was appended %d times, want %d", key, moved[key], want)
		}
	}
	s.t.Logf("%d were delayed, %d cancelled", len(s.delayed), len(s.cancelled))
}

func stamp(v any) int64 {
	text, _ := v.(string)
	ms, _ := strconv.ParseInt(text, 10, 64) // 0 for none
	return ms
}
