package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// bounded writes the metadata of the stream orders.
func (e *env) bounded(size int64, o string, processors ...string) {
	e.t.Helper()
	_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: 1, MaxLen: size, Overflow: o, Processors: processors})
	e.must(err)
}

// send appends records from first on to partition 0 of orders.
func (e *env) send(ctx context.Context, first, n int) Appended {
	p := e.Partition("orders", "", 0)
	return e.Append(ctx, []Append{{Stream: "orders", Log: p.Log, Records: records(first, n)}})[0]
}

// owner makes a processor own the partition, and read and ack a number of entries.
func (e *env) owner(processor string, read, acked int) Partition {
	e.t.Helper()
	p := e.Partition("orders", processor, 0)
	e.own(p, tenure(alice, 1))
	if read > 0 {
		var got []string
		for range read { // one by one: entries may be large, and the machine busy
			got = append(got, e.read(p, alice, 1)...)
		}
		equal(e.t, processor+" reads", len(got), read)
		for _, id := range got[:acked] {
			e.must(e.raw.XAck(e.ctx(), p.Log, GroupName(processor, alice), id).Err())
		}
	}
	return p
}

func (e *env) lost(p Partition) string { return e.raw.HGet(e.ctx(), p.Own, "lost").Val() }

func TestARejectedBatchLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(10, OverflowReject, "printer")
		e.owner("printer", 0, 0)
		e.must(e.send(e.ctx(), 0, 8).Err)
		got := e.send(e.ctx(), 8, 3)
		if !errors.Is(got.Err, ErrStreamFull) || got.Unknown || len(got.IDs) != 0 {
			t.Errorf("3 records where 2 fit: got %+v", got)
		}
		e.must(e.send(e.ctx(), 8, 2).Err)
		var full *FullError
		if got = e.send(e.ctx(), 10, 1); !errors.As(got.Err, &full) {
			t.Fatalf("got %v", got.Err)
		}
		equal(t, "error", *full, FullError{Stream: "orders", Size: 10, Length: 10, Wanted: 1, Processor: "printer", Started: true})
		equal(t, "text", full.Error(), "partition 0 of stream orders is full, 10 of 10 entries: processor printer is 10 behind; see docs/troubleshooting.md#stream-full")
		equal(t, "length", len(e.contents("__strm:example.orders.0")), 10)
	})
}

func TestAFullPartitionNamesWhoHoldsItBack(t *testing.T) {
	for _, tt := range []struct {
		name       string
		processors []string
		do         func(*env)
		want       string
	}{
		{"no processor", nil, func(*env) {}, "no processor is registered"},
		{"one that never started", []string{"printer"}, func(*env) {}, "processor printer has no consumer group; start it, or remove it with `processor rm orders/printer`"},
		{"the slowest of two", []string{"mailer", "printer"}, func(e *env) {
			e.owner("printer", 10, 6)
			e.owner("mailer", 4, 0)
		}, "processor mailer is 10 behind"},
		{"another program that reads less", []string{"printer"}, func(e *env) {
			p := e.owner("printer", 10, 10)
			e.must(e.raw.XGroupCreate(e.ctx(), p.Log, "billing", "0").Err())
		}, "consumer group billing, of no processor of this app, is 10 behind; `stream info orders` tells whose it is, `processor rm orders/billing` lets it go"},
		{"a processor that is not registered any more", []string{"printer"}, func(e *env) {
			p := e.owner("printer", 10, 10)
			e.must(e.raw.XGroupCreate(e.ctx(), p.Log, GroupName("mailer", bob), "0").Err())
		}, "consumer group mailer, of no processor of this app, is 10 behind"},
		{"a processor that registers after the metadata was read", []string{"printer"}, func(e *env) {
			p := e.owner("printer", 10, 10)
			e.must(e.raw.XGroupCreate(e.ctx(), p.Log, GroupName("mailer", bob), "0").Err())
			e.deliver(p.Log, GroupName("mailer", bob), 1, 1)
		}, "has 9 of 10 entries and no room for 2 more: consumer group mailer,"},
		{"less room than is needed", []string{"printer"}, func(e *env) {
			e.owner("printer", 10, 1)
		}, "partition 0 of stream orders has 9 of 10 entries and no room for 2 more: processor printer is 9 behind; see docs/troubleshooting.md#stream-full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				e.bounded(10, OverflowReject, tt.processors...)
				e.must(e.send(e.ctx(), 0, 10).Err)
				tt.do(e)
				if err := e.send(e.ctx(), 10, 2).Err; err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		})
	}
}

// Beside a Python app there may be Go senders and no worker. What Python's groups have acked makes
// room, and the last sender to start sets the policy for the rest.
func TestASenderAloneMakesRoomBesidePython(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(100, OverflowReject)
		p := e.Partition("orders", "", 0)
		for _, group := range []string{"printer", "mailer"} {
			e.must(e.raw.XGroupCreateMkStream(e.ctx(), p.Log, group, "0").Err())
		}
		e.must(e.send(e.ctx(), 0, 100).Err)
		e.deliver(p.Log, "printer", 100, 100)
		e.deliver(p.Log, "mailer", 90, 60)
		e.must(e.send(e.ctx(), 100, 60).Err)
		equal(t, "the first that is left", e.contents(p.Log)[0], "60")
		var full *FullError
		if err := e.send(e.ctx(), 160, 1).Err; !errors.As(err, &full) || full.Processor != "mailer" || !full.Foreign {
			t.Errorf("got %v, want that mailer holds the partition", err)
		}
		e.bounded(100, OverflowDropOldest)
		e.must(e.send(e.ctx(), 160, 5).Err)
		equal(t, "the first that is left behind drop-oldest", e.contents(p.Log)[0], "65")
		e.bounded(100, OverflowReject, "counter")
		e.bounded(100, OverflowDropOldest)
		if err := e.send(e.ctx(), 165, 1).Err; !errors.Is(err, ErrStreamFull) {
			t.Errorf("got %v: a sender changed a worker's policy", err)
		}
	})
}

// Acked entries make room without a worker, and more than is needed.
func TestAckedEntriesMakeRoom(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(400, OverflowReject, "printer")
		e.must(e.send(e.ctx(), 0, 400).Err)
		p := e.owner("printer", 400, 350)
		e.must(e.send(e.ctx(), 400, 1).Err)
		equal(t, "length: 3/4 and the new one", e.raw.XLen(e.ctx(), p.Log).Val(), 301)
		e.must(e.send(e.ctx(), 401, 200).Err)
		equal(t, "length: no more was removed than the room for 200 takes", e.raw.XLen(e.ctx(), p.Log).Val(), 400)
		equal(t, "the first", e.contents(p.Log)[0], "201")
	})
}

func TestEverythingAckedMakesRoomForAsMuch(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(10, OverflowReject, "printer")
		e.must(e.send(e.ctx(), 0, 10).Err)
		p := e.owner("printer", 10, 10)
		e.must(e.send(e.ctx(), 10, 10).Err)
		equal(t, "length", len(e.contents(p.Log)), 10)
		equal(t, "read", len(e.read(p, alice, 20)), 10)
	})
}

func TestACallIsNoLargerThanThePartition(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(4, OverflowReject, "printer")
		got := e.send(e.ctx(), 0, 11)
		if !errors.Is(got.Err, ErrStreamFull) || len(got.IDs) != 4 {
			t.Errorf("got %+v", got)
		}
		equal(t, "contents", e.contents("__strm:example.orders.0"), []string{"0", "1", "2", "3"})
	})
}

func TestDropOldestCountsWhatWasNotDelivered(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(10, OverflowDropOldest, "printer", "mailer", "never")
		printer, mailer := e.owner("printer", 0, 0), e.owner("mailer", 0, 0)
		e.must(e.send(e.ctx(), 0, 10).Err)
		equal(t, "printer reads", len(e.read(printer, alice, 3)), 3)
		e.must(e.send(e.ctx(), 10, 5).Err) // drops 0 to 4
		want := make([]string, 10)
		for i := range want {
			want[i] = fmt.Sprint(i + 5)
		}
		equal(t, "contents", e.contents(printer.Log), want)
		equal(t, "lost by printer", e.lost(printer), "2")
		equal(t, "lost by mailer", e.lost(mailer), "5")
		equal(t, "lost by one that never ran", e.lost(e.Partition("orders", "never", 0)), "5")
		got := e.send(e.ctx(), 15, 2500)
		e.must(got.Err)
		equal(t, "all are in", len(got.IDs), 2500)
		equal(t, "lost by printer", e.lost(printer), "2502")
		if e.real {
			e.read(printer, alice, 100)
			groups := try(e.raw.XInfoGroups(e.ctx(), printer.Log).Result()).must(t)
			for _, g := range groups {
				if g.Name == GroupName("printer", alice) {
					equal(t, "the server's own lag", g.Lag, 0)
				}
			}
		}
	})
}

// A smaller MaxLen is noticed, and a partition that is much too long loses the excess.
func TestDropOldestFromAPartitionThatIsTooLong(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(5000, OverflowDropOldest, "printer")
		p := e.owner("printer", 0, 0)
		e.must(e.send(e.ctx(), 0, 4000).Err)
		e.bounded(10, OverflowDropOldest, "printer")
		e.must(e.send(e.ctx(), 4000, 1).Err)
		equal(t, "length", e.raw.XLen(e.ctx(), p.Log).Val(), 10)
		equal(t, "lost", e.lost(p), "3991")
	})
}

func TestBlockWaitsForRoom(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(10, OverflowBlock, "printer")
		p := e.owner("printer", 0, 0)
		e.must(e.send(e.ctx(), 0, 10).Err)
		done := make(chan Appended, 1)
		go func() { done <- e.send(e.ctx(), 10, 1) }()
		quick, cancel := context.WithTimeoutCause(e.ctx(), 300*time.Millisecond, errors.New("the cause"))
		defer cancel()
		got := e.send(quick, 10, 2)
		if !errors.Is(got.Err, ErrStreamFull) || !errors.Is(got.Err, context.DeadlineExceeded) || got.Unknown || !strings.Contains(got.Err.Error(), "the cause") {
			t.Errorf("when ctx ends: got %+v", got)
		}
		select {
		case early := <-done:
			t.Fatalf("did not wait: %+v", early)
		default:
		}
		e.ack(p, alice, e.read(p, alice, 1)...)
		e.must((<-done).Err)
		equal(t, "the first and the last", e.contents(p.Log)[0]+e.contents(p.Log)[9], "110")
	})
}

func TestASenderThatIsItsOwnProcessorDoesNotWait(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(1, OverflowBlock, "printer")
		p := e.owner("printer", 0, 0)
		e.must(e.send(e.ctx(), 0, 1).Err)
		got := e.Append(e.ctx(), []Append{{Stream: "orders", Log: p.Log, Records: records(1, 1), Self: true}})[0]
		if !errors.Is(got.Err, ErrSelfBlock) || !errors.Is(got.Err, ErrStreamFull) {
			t.Errorf("got %+v", got)
		}
	})
}

// A full partition does not hold up the records of others.
func TestOneFullPartitionDoesNotStopTheOthers(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(5, OverflowBlock, "printer")
		e.must(e.send(e.ctx(), 0, 5).Err)
		ctx, cancel := context.WithTimeout(e.ctx(), 200*time.Millisecond)
		defer cancel()
		out := e.Append(ctx, []Append{
			{Stream: "orders", Log: e.Partition("orders", "", 0).Log, Records: records(5, 1)},
			{Stream: "orders", Partition: 1, Log: e.Partition("orders", "", 1).Log, Records: records(0, 5)},
		})
		if !errors.Is(out[0].Err, ErrStreamFull) {
			t.Errorf("full: got %+v", out[0])
		}
		e.must(out[1].Err)
	})
}

// A sender that meets a full partition follows the MaxLen and policy that a worker has set.
func TestASenderFollowsTheMetadata(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(5, OverflowReject, "printer")
		e.must(e.send(e.ctx(), 0, 5).Err)
		other := newEnv(t, e.addr, e.real)
		other.bounded(8, OverflowReject, "printer")
		e.must(e.send(e.ctx(), 5, 3).Err)
		other.bounded(8, OverflowDropOldest, "printer")
		e.must(e.send(e.ctx(), 8, 1).Err)
		equal(t, "contents", e.contents("__strm:example.orders.0"), []string{"1", "2", "3", "4", "5", "6", "7", "8"})
	})
}

func TestAWideRecordIsBoundedToo(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.bounded(1, OverflowReject, "printer")
		wide := make([]string, fieldsPerCall+2)
		for i := range wide {
			wide[i] = fmt.Sprint(i)
		}
		a := []Append{{Stream: "orders", Log: e.Partition("orders", "", 0).Log, Records: [][]string{wide}}}
		e.must(e.Append(e.ctx(), a)[0].Err)
		if err := e.Append(e.ctx(), a)[0].Err; !errors.Is(err, ErrStreamFull) {
			t.Errorf("got %v", err)
		}
	})
}

// If making room is cut off, drops are counted once, and the batch is in or refused for good.
func TestMakingRoomThatIsCutOff(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for _, c := range cuts {
			for n := 2; n <= 3; n++ { // EVALSHA: to send, to make room, to send again
				t.Run(fmt.Sprint(c.name, " ", n), func(t *testing.T) {
					e := &env{Client: e.Client, t: t, raw: e.raw, real: e.real, addr: e.addr}
					e.must(e.raw.FlushAll(e.ctx()).Err())
					e.must(errors.Join(sendScript.Load(e.ctx(), e.raw).Err(), roomScript.Load(e.ctx(), e.raw).Err()))
					e.bounded(10, OverflowDropOldest, "printer")
					p := e.owner("printer", 0, 0)
					e.must(e.send(e.ctx(), 0, 10).Err)
					proxy, hurt := e.behindProxy()
					proxy.On("EVALSHA", n).Do(c.action)
					got := hurt.send(e.ctx(), 10, 4)
					switch {
					case got.Err == nil:
						equal(t, "appended", len(got.IDs), 4)
					case n == 2 || !got.Unknown:
						t.Errorf("got %+v", got)
					}
					in := e.contents(p.Log)
					if len(in) != 10 && len(in) != 6 || got.Err == nil && len(in) != 10 {
						t.Errorf("contents %v", in)
					}
					equal(t, "the first", in[0], "4")
					equal(t, "lost", e.lost(p), "4")
				})
			}
		}
	})
}
