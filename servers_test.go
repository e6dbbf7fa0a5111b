// What retry_sim_test.go and rules_test.go show in fake time on the embedded server holds on a
// redis-server too: here both, in short.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// attempts are when each attempt of an item began.
type attempts struct {
	mu sync.Mutex
	at map[string][]time.Time // by "processor number#attempt"
}

func (a *attempts) note(processor string, e *runnel.Event, i item) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := fmt.Sprintf("%s %d#%d", processor, i.N, e.Attempt)
	if a.at == nil {
		a.at = map[string][]time.Time{}
	}
	a.at[key] = append(a.at[key], time.Now())
}

func (a *attempts) all() (lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, at := range a.at {
		lines = append(lines, fmt.Sprintf("%s x%d", key, len(at)))
	}
	slices.Sort(lines)
	return lines
}

// gap is how long after one attempt another one began.
func (a *attempts) gap(from, to string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[to][0].Sub(a.at[from][0])
}

// Of three items the first fails twice, the second always; another processor of
// the stream sees each once.
func TestRetriesOnBothServers(t *testing.T) {
	const first, most = 40 * time.Millisecond, 4
	for _, order := range []runnel.RetryOrder{runnel.OrderPartition, runnel.OrderKey, runnel.OrderNone} {
		t.Run(order.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
				var seen attempts
				app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
				t.Cleanup(func() { app.Close() })
				s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1})
				s.Process("other", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
					seen.note("other", e, i)
					return nil
				}), nil)
				s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
					seen.note("p", e, i)
					if i.N == 1 && e.Attempt < 3 || i.N == 2 {
						return errBad
					}
					return nil
				}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: most, Order: order, MinBackoff: first, Jitter: -1}})
				running(t, app)
				if err := s.Send(t.Context(), items(1, 2, 3)...); err != nil {
					t.Fatal(err)
				}
				redistest.Eventually(t, "a dead letter, and nothing else left", func() bool {
					ctx := t.Context()
					return rdb.XLen(ctx, "__dead:contract.items.p.0").Val() == 1 && rdb.HLen(ctx, "__parked:contract.items.p.0").Val() == 0 && len(seen.all()) == 11
				})
				want := "other 1#1 x1,other 2#1 x1,other 3#1 x1,p 1#1 x1,p 1#2 x1,p 1#3 x1,p 2#1 x1,p 2#2 x1,p 2#3 x1,p 2#4 x1,p 3#1 x1"
				if got := strings.Join(seen.all(), ","); got != want {
					t.Errorf("attempts\n%s, want\n%s", got, want)
				}
				for n := 1; n < most; n++ {
					want := first << (n - 1)
					if d := seen.gap(fmt.Sprint("p 2#", n), fmt.Sprint("p 2#", n+1)); d < want-time.Millisecond { // of the server's clock
						t.Errorf("attempt %d came %v after the one before, want %v at least", n+1, d, want)
					}
				}
				if n := rdb.XLen(t.Context(), "__dead:contract.items.p.0").Val(); n != 1 {
					t.Errorf("%d dead letters", n)
				}
			})
		})
	}
}

// Both a pause and a block must be removed, in either order, and nine that remove
// the last one at once do not make an event run twice.
func TestBlockAndPauseOnBothServers(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, _ *redis.Client) {
		for _, first := range []admin.RuleKind{admin.RulePause, admin.RuleBlock} {
			var seen attempts
			app := runnel.New("contract-"+string(first), &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
			t.Cleanup(func() { app.Close() })
			s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 4})
			s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
				seen.note("p", e, i)
				return nil
			}), nil)
			running(t, app)
			rules, p := admin.New(app), admin.ProcessorScope("items", "p")
			remove := map[admin.RuleKind]func(context.Context, admin.Scope) error{admin.RulePause: rules.Resume, admin.RuleBlock: rules.Unblock}
			last := map[admin.RuleKind]admin.RuleKind{admin.RulePause: admin.RuleBlock, admin.RuleBlock: admin.RulePause}[first]
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(rules.Pause(t.Context(), p, nil))
			must(rules.Block(t.Context(), p, nil))
			must(rules.Wait(t.Context(), p))
			must(s.Send(t.Context(), items(1, 2, 3, 4, 5)...))
			must(remove[first](t.Context(), p))
			must(rules.Wait(t.Context(), p)) // held by the other one
			if got := seen.all(); len(got) > 0 {
				t.Errorf("begun: %q", got)
			}
			var wg sync.WaitGroup
			for range 9 {
				wg.Go(func() {
					if err := remove[last](t.Context(), p); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			redistest.Eventually(t, "all events", func() bool { return len(seen.all()) == 5 })
			if got := strings.Join(seen.all(), ","); got != "p 1#1 x1,p 2#1 x1,p 3#1 x1,p 4#1 x1,p 5#1 x1" {
				t.Errorf("first the %s: %s", first, got)
			}
		}
	})
}
