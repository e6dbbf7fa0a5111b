package webhook_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/webhook"
)

// soon is a Retry that tries again and again, with short waits.
func soon() *runnel.Retry {
	return &runnel.Retry{Max: 1_000_000, MinBackoff: 50 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
}

// A publisher publishes one event after the other over HTTP, and counts those that were accepted.
type publisher struct {
	*site
	token    string
	accepted int64
}

// try publishes the next event, and reports whether the topic has taken it. The refusal says that the topic is full, and when to come again.
func (p *publisher) try() (taken bool, text string) {
	p.Helper()
	resp, text := p.ask(p.token, "POST", "/topics/orders", fmt.Sprintf(`{"type":"update","url":"https://x/orders/%d"}`, p.accepted+1))
	switch {
	case resp.StatusCode == http.StatusNoContent:
		p.accepted++
		return true, ""
	case resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !strings.Contains(text, "topic orders is full"):
		p.Fatalf("event %d: got %d, %v, %s", p.accepted+1, resp.StatusCode, resp.Header, text)
	}
	return false, text
}

// fill publishes until the topic is full because of one subscriber, whom the refusals name again and again: what was looked up before is
// believed for a while.
func (p *publisher) fill(slowest string) {
	p.Helper()
	before, named := p.accepted, 0
	redistest.Eventually(p, "full because of "+slowest, func() bool {
		taken, text := p.try()
		if named++; taken || !strings.Contains(text, "subscriber "+slowest+" is the slowest") {
			named = 0
		}
		return named >= 20 && p.accepted > before
	})
}

// reach publishes until so many events were accepted.
func (p *publisher) reach(n int64) {
	p.Helper()
	redistest.Eventually(p, "room", func() bool { _, _ = p.try(); return p.accepted == n })
}

// Nine subscribers are up and one is down, and publishers are refused what does not fit: what they were not refused arrives, at all ten once
// the one is back, or at nine once it is none any more.
func TestAFullTopicLosesNothing(t *testing.T) {
	tier.Slow(t)
	const most, healthy = 40, 9
	h := newHooks(t)
	s := newSite(t, redistest.Start(t).URL(), webhook.Options{
		MaxLen: most, Keep: 10, Overflow: runnel.Reject, AllowHTTP: true, JoinDelay: time.Millisecond, Retry: soon(),
	})
	s.run()
	wants := func(name string) string { return `{"topics":["orders"],"callback":"` + h.at(name) + `","timeout":0}` }
	var names []string
	for i := range healthy {
		names = append(names, fmt.Sprint("mail", i))
		s.want(204, s.token(names[i]), "POST", "/subscription", wants(names[i]))
	}
	gone := s.token("gone")
	s.want(204, gone, "POST", "/subscription", wants("gone"))
	h.fail("gone", true)
	p := &publisher{site: s, token: s.token("shop")}

	p.fill("gone")
	if p.accepted > most {
		t.Errorf("%d events were accepted", p.accepted)
	}
	for _, name := range names {
		h.exactly(name, "orders", p.accepted)
	}
	h.fail("gone", false)
	p.reach(2 * most)
	for _, name := range append(names, "gone") {
		h.exactly(name, "orders", p.accepted)
	}
	redistest.Eventually(t, "figures", func() bool {
		for _, row := range s.rows(rootToken) {
			if fmt.Sprint(row["events"].(map[string]any)["queued"]) != "0" {
				return false
			}
		}
		return true
	})
	for name, row := range s.rows(rootToken) {
		events := row["events"].(map[string]any)
		if got, want := fmt.Sprint(events["sent"], events["dropped"], events["dead"]), fmt.Sprint(2*most, 0, 0); got != want {
			t.Errorf("%s: sent, dropped, dead are %s, want %s", name, got, want)
		}
	}

	h.fail("gone", true)
	p.fill("gone")
	s.want(204, gone, "DELETE", "/subscriber", "")
	p.reach(p.accepted + most)
	for _, name := range names {
		h.exactly(name, "orders", p.accepted)
	}
}

// running runs a worker with a bus while fn runs.
func running(t *testing.T, addr string, fn func(bus *webhook.Bus)) {
	t.Helper()
	app := runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr, Logger: slog.New(slog.DiscardHandler)})
	bus := webhook.New(app, "bus", &webhook.Options{
		Partitions: 4, MaxLen: 300, Keep: 10, JoinDelay: time.Millisecond, Retry: soon(), AllowHTTP: true, AllowAddresses: local,
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	fn(bus)
}

// figuresOf returns all subscribers of a bus, by name.
func figuresOf(t *testing.T, bus *webhook.Bus) map[string]webhook.Subscriber {
	t.Helper()
	all := map[string]webhook.Subscriber{}
	for s, err := range bus.Subscribers(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all[s.Client] = s
	}
	return all
}

// Nine subscribers keep up and one is down, and the oldest events give way: publishing never fails, the nine miss nothing, and the one misses
// what is counted.
func TestWhoKeepsUpMissesNothing(t *testing.T) {
	tier.Server(t)
	const healthy, total = 9, 2000
	h, addr := newHooks(t), redistest.Start(t).Addr()
	var names []string
	for i := range healthy {
		names = append(names, fmt.Sprint("mail", i))
	}
	h.fail("gone", true)
	running(t, addr, func(bus *webhook.Bus) {
		for _, name := range append(names, "gone") {
			if err := bus.Subscribe(t.Context(), webhook.Subscription{Client: name, Callback: h.at(name), Topics: []string{"orders"}, Timeout: -1}); err != nil {
				t.Fatal(err)
			}
		}
		for n := int64(0); n < total; {
			var events []webhook.Event
			for range 50 {
				n++
				events = append(events, webhook.Event{Topic: "orders", Type: webhook.Update, URL: fmt.Sprintf("https://x/orders/%d", n)})
			}
			if _, err := bus.Publish(t.Context(), "shop", events...); err != nil {
				t.Fatal(err)
			}
			for _, name := range names { // or they would be far behind, too
				h.exactly(name, "orders", n)
			}
		}
		if s := figuresOf(t, bus)["gone"]; s.Dropped+s.Queued != total || s.Dropped == 0 || s.Queued == 0 {
			t.Errorf("dropped %d, queued %d of %d", s.Dropped, s.Queued, total)
		}
	})
	h.fail("gone", false)
	running(t, addr, func(bus *webhook.Bus) { // a worker that has none of the events in memory
		redistest.Eventually(t, "everything is sent", func() bool {
			for _, s := range figuresOf(t, bus) {
				if s.Queued > 0 {
					return false
				}
			}
			return true
		})
		for name, s := range figuresOf(t, bus) {
			got := h.numbers(name, "orders")
			if !slices.IsSorted(got) || len(slices.Compact(got)) != int(s.Sent) || got[len(got)-1] != total || s.Sent+s.Dropped != total ||
				(s.Dropped > 0) != (name == "gone") || s.Dead > 0 {
				t.Errorf("%s has %d events of %d, and %+v: %v", name, len(got), total, s, got)
			}
		}
	})
}
