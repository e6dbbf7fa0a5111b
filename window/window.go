// Package window adds up the events of a key in windows of time, and tells each sum once,
// when its window closes. A window is a row of a table (runnel.Table), so what is open
// outlasts workers and rebalances, and what the sum becomes is emitted once.
//
// Times are those at which events were appended. They ascend in a partition, so no event is
// late, and the same events make the same windows whenever they are processed. See
// docs/tables.md.
package window

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
)

// A Window is what the events of one key have made in one window.
type Window[A any] struct {
	Key   string
	Start time.Time // of the window; of a session, its first event's
	End   time.Time // behind the window; of a session, its last event's
	Value A
}

// An Open is a window that is not closed, as its row in the table.
type Open[A any] struct {
	Value A
	Start time.Time // see Window
	Last  time.Time // when its latest event was appended
}

// Tumbling registers a processor that divides the time of each key into windows of the same
// size, which begin at multiples of it since 1970, in UTC. add returns the sum with one more
// event, beginning with the zero A; it must not change what its sum refers to. done is called
// with each window that had events, as Table.OnExpire says: after all its events and before
// any that came later, or once Redis' clock says that it is over and no event waits. An event
// that was parked (Retry) counts in the window of its successful attempt. The windows that are
// open are the rows of the table that Tumbling returns, which has the name of the processor.
//
// The functions are called as those of Stream.Process and OnExpire are, and an error is
// treated so. Where a Retry has given done up, the next event of the key calls it again for that
// window first, and fails with it. A nil opts is all defaults; its Tables may name others. It does no I/O. It
// panics as NewTable and Process do, also for what the codec, MsgPack, cannot store of A; if a
// function is nil, and if size is no positive whole number of milliseconds. In tests runneltest.Script.Quiet lets
// windows close.
func Tumbling[A, T any](s *runnel.Stream[T], name string, size time.Duration, add func(sum A, record T) A, done func(ctx context.Context, w Window[A]) error, opts *runnel.ProcessorOptions) *runnel.Table[Open[A]] {
	check(s.Name(), name, "size", size)
	every := size.Milliseconds()
	return process(s, name, add, done, opts, kind[A]{
		start: func(at time.Time) time.Time {
			ms := at.UnixMilli()
			return time.UnixMilli(ms - (ms%every+every)%every)
		},
		until: func(o Open[A]) time.Time { return o.Start.Add(size) },
		end:   func(o Open[A]) time.Time { return o.Start.Add(size) },
	})
}

// Session registers a processor that takes the events of a key together that come without a
// pause of gap between two of them. All else is as with Tumbling: done is called when the
// pause behind the last event is over.
func Session[A, T any](s *runnel.Stream[T], name string, gap time.Duration, add func(sum A, record T) A, done func(ctx context.Context, w Window[A]) error, opts *runnel.ProcessorOptions) *runnel.Table[Open[A]] {
	check(s.Name(), name, "gap", gap)
	return process(s, name, add, done, opts, kind[A]{
		start: func(at time.Time) time.Time { return at },
		until: func(o Open[A]) time.Time { return o.Last.Add(gap) },
		end:   func(o Open[A]) time.Time { return o.Last },
	})
}

// kind is a kind of windows.
type kind[A any] struct {
	start func(at time.Time) time.Time // of the window of an event that was appended then
	until func(Open[A]) time.Time      // when it closes, unless events prolong it
	end   func(Open[A]) time.Time      // Window.End
}

func check(stream, name, what string, d time.Duration) {
	if d < time.Millisecond || d%time.Millisecond != 0 {
		panic(fmt.Sprintf("window: stream %s: %s: %s %v is no positive whole number of milliseconds", stream, name, what, d))
	}
}

func process[A, T any](s *runnel.Stream[T], name string, add func(A, T) A, done func(context.Context, Window[A]) error, opts *runnel.ProcessorOptions, k kind[A]) *runnel.Table[Open[A]] {
	if add == nil || done == nil {
		panic("window: stream " + s.Name() + ": " + name + ": nil function")
	}
	if checker, ok := codec.MsgPack.(codec.TypeChecker); ok { // that of an Open does not look into A
		if err := checker.Check(reflect.TypeFor[A]()); err != nil {
			panic("window: stream " + s.Name() + ": " + name + ": " + err.Error())
		}
	}
	tell := func(ctx context.Context, key string, o Open[A]) error {
		return done(ctx, Window[A]{Key: key, Start: o.Start, End: k.end(o), Value: o.Value})
	}
	open := runnel.NewTable[Open[A]](s, name, nil)
	open.OnExpire(tell)
	o := *cmp.Or(opts, &runnel.ProcessorOptions{})
	o.Tables = append([]runnel.State{open}, o.Tables...)
	s.Process(name, func(owned context.Context, events *runnel.Events[T]) error {
		rows := open.Rows(owned)
		for event, record := range events.All() {
			at, key := rows.Now(), event.Key()
			row, ok := rows.Get(key)
			if ok && !k.until(row).After(at) { // it has no end any more, since done has failed
				if err := tell(events.Context(), key, row); err != nil {
					return err
				}
				row, ok = Open[A]{}, false
			}
			if !ok {
				row.Start = k.start(at)
			}
			row.Value, row.Last = add(row.Value, record), at
			rows.SetUntil(key, row, k.until(row))
		}
		return nil
	}, &o)
	return open
}
