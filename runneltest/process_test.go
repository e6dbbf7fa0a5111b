package runneltest_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

type order struct {
	Customer string
	Amount   int
}

func customer(o order) string { return o.Customer }

// stream declares a stream with one processor, "p".
func stream(fn runnel.ProcessFunc[order], opts *runnel.ProcessorOptions) *runnel.Stream[order] {
	app := runnel.New("shop", nil)
	s := runnel.NewStream(app, "orders", customer, nil)
	s.Process("p", fn, opts)
	return s
}

var errRefund = errors.New("refund")

func TestProcessTellsWhatBecameOfEvents(t *testing.T) {
	refuse := runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		if o.Amount < 0 {
			return errRefund
		}
		return nil
	})
	tests := []struct {
		name   string
		policy runnel.Policy
		orders []order
		want   runneltest.Result
	}{
		{name: "no events"},
		{
			name: "all done", orders: []order{{"ada", 1}, {"bob", 2}},
			want: runneltest.Result{Taken: []string{"1-0", "2-0"}, Acked: []string{"1-0", "2-0"}},
		},
		{
			name: "halt", orders: []order{{"ada", 1}, {"ada", -1}, {"ada", 2}},
			want: runneltest.Result{Taken: []string{"1-0", "2-0"}, Acked: []string{"1-0"}, Err: errRefund},
		},
		{
			name: "ignore", policy: runnel.Ignore, orders: []order{{"ada", -1}, {"ada", 2}},
			want: runneltest.Result{Taken: []string{"1-0", "2-0"}, Acked: []string{"1-0", "2-0"}, Ignored: 1, IgnoredErrs: []error{errRefund}},
		},
		{
			name: "quarantine", policy: runnel.Quarantine, orders: []order{{"ada", 1}, {"ada", -1}, {"ada", 2}},
			want: runneltest.Result{Taken: []string{"1-0", "2-0"}, Acked: []string{"1-0"}, Quarantined: errRefund},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := stream(refuse, &runnel.ProcessorOptions{OnError: tt.policy})
			got := runneltest.Process(t, s, "p", tt.orders...)
			if !slices.Equal(got.Taken, tt.want.Taken) || !slices.Equal(got.Acked, tt.want.Acked) || got.Ignored != tt.want.Ignored {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if !same(got.Err, tt.want.Err) || !same(got.Quarantined, tt.want.Quarantined) {
				t.Errorf("ended with %v and %v, want %v and %v", got.Err, got.Quarantined, tt.want.Err, tt.want.Quarantined)
			}
			if !slices.EqualFunc(got.IgnoredErrs, tt.want.IgnoredErrs, same) {
				t.Errorf("ignored %v, want %v", got.IgnoredErrs, tt.want.IgnoredErrs)
			}
		})
	}
}

// same reports whether err is want, or neither is one.
func same(err, want error) bool { return (err == nil) == (want == nil) && errors.Is(err, want) }

func TestSentRecords(t *testing.T) {
	app := runnel.New("shop", nil)
	in := runnel.NewStream(app, "in", customer, nil)
	out := runnel.NewStream(app, "out", func(n int) string { return "k" }, &runnel.StreamOptions{Partitions: 2})
	in.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, o order) error {
		if err := out.Send(ctx, o.Amount, o.Amount+1); err != nil {
			return err
		}
		_, err := out.SendEvents(ctx, runnel.Outgoing[int]{Record: -o.Amount, Key: o.Customer, Headers: map[string]string{"of": e.ID}})
		return err
	}), nil)

	got := runneltest.Process(t, in, "p", order{"ada", 10}, order{"bob", 20})
	if want := []int{10, 11, -10, 20, 21, -20}; !slices.Equal(runneltest.Sent(t, got, out), want) {
		t.Errorf("sent %v, want %v", runneltest.Sent(t, got, out), want)
	}
	if sent := runneltest.Sent(t, got, in); sent != nil {
		t.Errorf("the input counts as sent: %v", sent)
	}
	want := runnel.Outgoing[int]{Record: -20, Key: "bob", Headers: map[string]string{"of": "2-0"}}
	if sent := runneltest.SentEvents(t, got, out); !reflect.DeepEqual(sent[5], want) {
		t.Errorf("sent %+v, want %+v", sent[5], want)
	}
	if got := runneltest.Process(t, in, "p"); runneltest.Sent(t, got, out) != nil {
		t.Error("a run knows what an earlier one sent")
	}
}

func TestFailSends(t *testing.T) {
	app := runnel.New("shop", nil)
	s := runnel.NewStream(app, "s", customer, nil)
	broken := errors.New("broken")
	s.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error { return s.Send(ctx, o) }), nil)
	got := runneltest.Events(t, s, "p").Records(order{"ada", 1}).FailSends(broken).Run()
	if !errors.Is(got.Err, broken) || got.Acked != nil || runneltest.Sent(t, got, s) != nil {
		t.Errorf("got %+v", got)
	}
}

func TestScriptOfEvents(t *testing.T) {
	var seen []runnel.Event
	var headers map[string]string
	s := stream(runnel.Each(func(_ context.Context, e *runnel.Event, _ order) error {
		seen = append(seen, *e)
		if e.Headers() != nil {
			headers = e.Headers()
		}
		return nil
	}), &runnel.ProcessorOptions{OnError: runnel.Ignore})
	at := time.UnixMilli(1_700_000_000_000)
	got := runneltest.Events(t, s, "p").Partition(7).Epoch(42).
		Records(order{"ada", 1}).Redelivered().
		Raw(map[string]string{"data": "\xc1"}).
		Outgoing(runnel.Outgoing[order]{Record: order{"bob", 2}, Key: "k", Headers: map[string]string{"trace": "x"}}).
		Appended(at).Records(order{"ada", 3}, order{"ada", 4}).Run()
	if want := []string{"1-0", "2-0", "3-0", "1700000000000-0", "1700000000000-1"}; !slices.Equal(got.Acked, want) {
		t.Fatalf("acked %v, want %v", got.Acked, want)
	}
	var bad *runnel.DecodeError
	if got.Ignored != 1 || !errors.As(got.IgnoredErrs[0], &bad) || bad.Event.ID != "2-0" {
		t.Errorf("ignored %v", got.IgnoredErrs)
	}
	if len(seen) != 4 || !seen[0].Redelivered || seen[1].Redelivered || seen[1].Key() != "k" || headers["trace"] != "x" {
		t.Errorf("seen %+v, headers %v", seen, headers)
	}
	for _, e := range seen {
		if e.Partition != 7 || e.Epoch != 42 {
			t.Errorf("event %s of partition %d, epoch %d", e.ID, e.Partition, e.Epoch)
		}
	}
	if !seen[3].Appended().Equal(at) {
		t.Errorf("appended %v", seen[3].Appended())
	}
}

func TestEndsInTheMiddle(t *testing.T) {
	tests := []struct {
		name  string
		end   func(*runneltest.Script[order]) *runneltest.Script[order]
		cause error
		after time.Duration
		acked []string
	}{
		{"release", (*runneltest.Script[order]).Release, runnel.ErrReleased, 3 * time.Second, []string{"1-0"}},
		{"shutdown", (*runneltest.Script[order]).Shutdown, runnel.ErrShutdown, 3 * time.Second, []string{"1-0"}},
		{"loss", (*runneltest.Script[order]).Lose, runnel.ErrLost, 0, []string{"1-0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				s := stream(runnel.Each(func(ctx context.Context, _ *runnel.Event, _ order) error {
					if n++; n == 2 {
						began := time.Now()
						<-ctx.Done()
						if d := time.Since(began); d != tt.after || context.Cause(ctx) != tt.cause {
							t.Errorf("ended after %v with %v", d, context.Cause(ctx))
						}
						return ctx.Err()
					}
					return nil
				}), &runnel.ProcessorOptions{Grace: 3 * time.Second})
				got := tt.end(runneltest.Events(t, s, "p").Records(order{"ada", 1}, order{"ada", 2})).Run()
				if got.Err != nil || !slices.Equal(got.Acked, tt.acked) {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

func TestAcksOfALostPartitionAreVoid(t *testing.T) {
	s := stream(runnel.Each(func(context.Context, *runnel.Event, order) error { return nil }), nil)
	got := runneltest.Events(t, s, "p").Records(order{"ada", 1}, order{"ada", 2}).Lose().Run()
	if !slices.Equal(got.Acked, []string{"1-0"}) || len(got.Taken) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestAFunctionThatNeverBeginsIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stream(func(context.Context, *runnel.Events[order]) error { return errRefund }, &runnel.ProcessorOptions{OnError: runnel.Ignore})
		got := runneltest.Process(t, s, "p", order{"ada", 1})
		if got.Err != nil || len(got.IgnoredErrs) != 3 || got.Taken != nil {
			t.Errorf("got %+v", got)
		}
	})
}

func TestFatalInsideAFunctionEndsTheTest(t *testing.T) {
	fake := &fatalTB{TB: t}
	s := stream(runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		if o.Amount < 0 {
			fake.FailNow()
		}
		return nil
	}), nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runneltest.Process(fake, s, "p", order{"ada", -1})
		t.Error("Process returned")
	}()
	<-done
	if got := runneltest.Process(t, s, "p", order{"ada", 1}); got.Err != nil || len(got.Acked) != 1 {
		t.Errorf("the app cannot be used again: %+v", got)
	}
}

func TestMistakesAreFatal(t *testing.T) {
	s := stream(runnel.Each(func(context.Context, *runnel.Event, order) error { return nil }), nil)
	for name, fn := range map[string]func(testing.TB){
		"unknown processor": func(t testing.TB) { runneltest.Process(t, s, "q") },
		"after the end":     func(t testing.TB) { runneltest.Events(t, s, "p").Release().Records(order{}) },
		"two ends":          func(t testing.TB) { runneltest.Events(t, s, "p").Lose().Release() },
	} {
		fake := &fatalTB{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			fn(fake)
			t.Errorf("%s: no mistake", name)
		}()
		<-done
	}
}

// fatalTB ends the goroutine and leaves the test as it was.
type fatalTB struct{ testing.TB }

func (f *fatalTB) FailNow()              { runtime.Goexit() }
func (f *fatalTB) Fatal(...any)          { runtime.Goexit() }
func (f *fatalTB) Fatalf(string, ...any) { runtime.Goexit() }
