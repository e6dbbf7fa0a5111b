package webhook_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// numbers are the texts of first and so on.
func numbers(first, n int) (all []string) {
	for i := range n {
		all = append(all, strconv.Itoa(first+i))
	}
	return all
}

func TestEventsComeInOrder(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.start("one")
		r.subscribe("mail", 10, 100*time.Millisecond, "orders", "users")
		r.publish("orders", 1, 25)
		r.publish("users", 1, 3)
		time.Sleep(time.Second)
		for topic, n := range map[string]int{"orders": 25, "users": 3} {
			if got := r.had("mail", topic); !slices.Equal(got, numbers(1, n)) {
				t.Errorf("%s: got %v\n%s", topic, got, r.told.String())
			}
		}
	})
}

func TestBatchesAreCutByCountAndDeadline(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.start("one")
		r.subscribe("mail", 5, time.Second, "orders")
		for _, tt := range []struct {
			n    int
			want []int
			last time.Duration // of the last batch
		}{{5, []int{5}, 0}, {3, []int{3}, time.Second}, {12, []int{5, 5, 2}, time.Second}} {
			r.mu.Lock()
			r.requests = nil
			r.mu.Unlock()
			began := time.Now()
			r.publish("orders", 1, tt.n)
			time.Sleep(3 * time.Second)
			all := r.of("mail")
			if got := r.sizes("mail"); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Fatalf("%d events: batches of %v, want %v\n%s", tt.n, got, tt.want, r.told.String())
			}
			if took := all[len(all)-1].at.Sub(began); (took - tt.last).Abs() > 20*time.Millisecond {
				t.Errorf("%d events: the last batch comes after %v, want %v", tt.n, took, tt.last)
			}
		}
	})
}

// A receiver that is down for an hour costs few requests, and gets everything in order when it is back.
func TestAReceiverThatIsDownForAnHour(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	inRig(t, nil, func(r *rig) {
		r.start("one")
		r.subscribe("mail", 100, -1, "orders")
		r.publish("orders", 0, 1)
		time.Sleep(time.Second)
		down := time.Now()
		r.answer("mail.example", func(one *request) int {
			switch took := time.Since(down); {
			case took < 20*time.Minute:
				return 502
			case took < 40*time.Minute:
				return 500
			case took < time.Hour:
				return 0 // it hangs
			}
			return 204
		})
		const perTick, ticks = 8, 360
		for i := range ticks {
			r.publish("orders", 1+i*perTick, perTick)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(2 * time.Minute)
		if got, want := r.had("mail", "orders"), numbers(0, 1+ticks*perTick); !slices.Equal(got, want) {
			t.Fatalf("got %d events, want %d in order\n%s", len(got), len(want), r.told.String())
		}
		failed := map[string]bool{}
		n, last := 0, time.Time{}
		for _, one := range r.of("mail") {
			if one.status/100 == 2 {
				continue
			}
			failed[one.id+one.body] = true
			if n++; n > 8 {
				if gap := one.at.Sub(last); gap > 95*time.Second || gap < 45*time.Second {
					t.Errorf("attempt %d comes %v behind the one before", n, gap)
				}
			}
			last = one.at
		}
		if n < 40 || n > 90 || len(failed) != 1 {
			t.Errorf("%d attempts of %d batches failed, want 40 to 90 of one", n, len(failed))
		}
	})
}

// Receivers that hang cost others nothing.
func TestOneOfTenHangs(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		r.start("one")
		for i := range 10 {
			r.subscribe(fmt.Sprint("mail", i), 10, -1, "orders")
		}
		r.answer("mail3.example", func(*request) int { return 0 })
		for i := range 600 {
			r.publish("orders", i, 1)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for i := range 10 {
			client := fmt.Sprint("mail", i)
			if i != 3 && !slices.Equal(r.had(client, "orders"), numbers(0, 600)) {
				t.Errorf("%s got %d of 600", client, len(r.had(client, "orders")))
			}
			for _, one := range r.of(client) {
				if late := one.at.UnixMilli() - one.events[0].T; i != 3 && late > 100 {
					t.Fatalf("%s gets an event after %d ms", client, late)
				}
			}
		}
		if n := len(r.of("mail3")); n > 4 {
			t.Errorf("%d attempts in a minute, each of which takes 20 s", n)
		}
	})
}

// Whoever dies or stands still meanwhile: a batch comes again whole and as it was, by an owner of a larger epoch, and everything goes on without
// a gap.
func TestOwnersThatDie(t *testing.T) {
	for _, how := range []string{"kill", "freeze", "release"} {
		t.Run(how, func(t *testing.T) {
			inRig(t, nil, func(r *rig) {
				w := r.start("w0")
				r.subscribe("mail", 10, -1, "orders")
				for i := range 5 {
					next := r.c.Start(fmt.Sprint("w", i+1))
					hit := false
					r.answer("mail.example", func(one *request) int {
						if hit {
							return 204
						}
						hit = true // between the request and its answer
						switch how {
						case "kill":
							go w.Kill()
							return 0
						case "freeze":
							w.Freeze(30 * time.Second)
						case "release":
							go w.Stop()
						}
						return 204
					})
					r.publish("orders", i*20, 20)
					time.Sleep(time.Minute)
					if how == "freeze" {
						r.must(w.Stop())
					}
					w = next
				}
				judge(t, r, "mail", "orders", 100)
			})
		})
	}
}

// judge wants all events in the order of their first receipts, batches that come again as they were, and epochs and attempts that rise.
func judge(t *testing.T, r *rig, client, topic string, n int) {
	t.Helper()
	first := map[string]bool{}
	var order []string
	content, attempts := map[string]string{}, map[string]int{}
	for _, one := range r.of(client) {
		if was, again := content[one.id]; again && was != one.body {
			t.Errorf("%s is another batch the second time", one.id)
		}
		if one.attempt <= attempts[one.id] { // one may be counted whose owner died before its request
			t.Errorf("%s: attempt %d behind %d", one.id, one.attempt, attempts[one.id])
		}
		content[one.id], attempts[one.id] = one.body, one.attempt
		for _, e := range one.events {
			if e.Topic == topic && !first[e.URL] {
				first[e.URL], order = true, append(order, e.URL)
			}
		}
	}
	if len(order) != n {
		t.Errorf("%s got %d events of %d\n%s", client, len(order), n, r.told.String())
	}
	for i, url := range order {
		if want := fmt.Sprintf("https://x/%s/%d", topic, i); url != want {
			t.Fatalf("event %d is %s", i, url)
		}
	}
}

// A worker whose receivers hang ends when its time is over, and what it has begun comes again.
func TestAWorkerThatEndsWhileReceiversHang(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		w := r.start("one")
		for i := range 8 {
			r.subscribe(fmt.Sprint("mail", i), 10, -1, "orders")
			r.answer(fmt.Sprintf("mail%d.example", i), func(*request) int { return 0 })
		}
		r.publish("orders", 0, 5)
		time.Sleep(50 * time.Second)
		r.must(w.Stop())
		for i := range 8 {
			r.answer(fmt.Sprintf("mail%d.example", i), nil)
		}
		r.start("two")
		time.Sleep(2 * time.Minute)
		for i := range 8 {
			judge(t, r, fmt.Sprint("mail", i), "orders", 5)
		}
	})
}
