package webhook_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/webhook"
)

// A crowd counts requests that are under way at once, of those who have failed three times.
type crowd struct {
	sync.Mutex
	failed  map[string]int // by host
	now     int
	largest int
	few     int // subscribers that have not failed three times
}

func (c *crowd) young() int {
	c.Lock()
	defer c.Unlock()
	return c.few
}

// most returns how many of them were asked at once, at most.
func (c *crowd) most() int {
	c.Lock()
	defer c.Unlock()
	return c.largest
}

// hang is a receiver that does not answer.
func (c *crowd) hang(one *request) int {
	c.Lock()
	failing := c.failed[one.host] >= 3
	if failing {
		c.now++
		c.largest = max(c.largest, c.now)
	}
	c.Unlock()
	<-one.ctx.Done()
	c.Lock()
	defer c.Unlock()
	if failing {
		c.now--
	}
	if c.failed[one.host]++; c.failed[one.host] == 3 {
		c.few--
	}
	return 0
}

// Subscribers that have failed three times in a row have half of the requests among them, all of that half, and the others go on. It does
// not matter whether they attempt one batch again and again, or give it up and attempt its events one by one.
func TestFailingSubscribersShareHalf(t *testing.T) {
	for _, most := range []int{1_000_000, 5} {
		t.Run(fmt.Sprint(most), func(t *testing.T) { shareHalf(t, most) })
	}
}

func shareHalf(t *testing.T, most int) {
	const hanging, healthy, first = 20, 5, 10
	opts := &webhook.Options{
		Concurrency: 8, PerHost: 1000, Timeout: 5 * time.Second,
		Retry: &runnel.Retry{Max: most, MinBackoff: time.Second, MaxBackoff: time.Second},
	}
	inRig(t, opts, func(r *rig) {
		r.start("one")
		c := &crowd{failed: map[string]int{}, few: hanging}
		for i := range hanging {
			name := fmt.Sprint("dead", i)
			r.answer(name+".example", c.hang)
			r.subscribe(name, 10, -1, "orders")
		}
		for i := range healthy {
			r.subscribe(fmt.Sprint("mail", i), 10, -1, "orders")
		}
		r.publish("orders", 0, first)
		for c.young() > 0 { // all eight of them may be taken until then
			time.Sleep(time.Second)
		}
		time.Sleep(2 * opts.Timeout) // what they had begun before has ended
		began := time.Now()
		for i := range 100 {
			r.publish("orders", first+i, 1)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if got := c.most(); got != opts.Concurrency/2 {
			t.Errorf("%d requests of failing subscribers at once, want %d", got, opts.Concurrency/2)
		}
		for i := range healthy {
			name := fmt.Sprint("mail", i)
			if got := r.had(name, "orders"); !slices.Equal(got, numbers(0, first+100)) {
				t.Errorf("%s has %d of 110 events\n%s", name, len(got), r.told.String())
			}
			for _, one := range r.of(name) {
				if late := one.at.UnixMilli() - one.events[0].T; one.at.After(began) && late > 100 {
					t.Errorf("%s gets an event after %d ms", name, late)
					break
				}
			}
		}
	})
}
