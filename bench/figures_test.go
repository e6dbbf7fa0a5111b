package main

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestPayloadsHaveTheSizeThatWasAskedFor(t *testing.T) {
	for _, codec := range []string{"msgpack", "json"} {
		for _, size := range []int{100, 1 << 10, 64 << 10} {
			records, err := orders(codecNamed(codec), customers+1, size)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range records {
				if data, err := codecNamed(codec).Encode(o); err != nil || len(data) != size {
					t.Fatalf("%s: %d bytes, %v, want %d", codec, len(data), err, size)
				}
			}
		}
	}
}

func TestMeterCountsFromWhereItShould(t *testing.T) {
	for _, tt := range []struct{ skip, add, first, last int64 }{{0, 1, 1, 100}, {10, 1, 10, 100}, {10, 7, 14, 105}} {
		m := newMeter(100)
		m.skip = tt.skip
		for m.n.Load() < m.want {
			m.add(tt.add)
		}
		m.add(tt.add) // too many are no harm
		if err := m.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first := m.first.Load().n; first != tt.first || m.last.n != tt.last {
			t.Errorf("skip %d, %d at a time: from %d to %d, want %d to %d", tt.skip, tt.add, first, m.last.n, tt.first, tt.last)
		}
	}
	m := &meter{last: mark{n: 101, at: time.Unix(12, 0), cpu: 3 * time.Second}}
	m.first.Store(&mark{n: 1, at: time.Unix(10, 0), cpu: time.Second})
	if r := m.result(); r["rate"] != 50 || r["cpu"] != 20_000 {
		t.Errorf("got %v, want 50 events/s and 20000 µs", r)
	}
}

// All goroutines together send every batch once.
func TestSendersShareTheEvents(t *testing.T) {
	task := Task{Count: 100, Readers: 3, Size: 100}
	var mu sync.Mutex
	sent := 0
	err := task.share(t.Context(), 12_000, func(_ context.Context, from, to int) error {
		mu.Lock()
		defer mu.Unlock()
		if to-from != 100 || to > task.distinct() {
			t.Errorf("from %d to %d of %d", from, to, task.distinct())
		}
		sent += to - from
		return nil
	})
	if err != nil || sent != 12_000 {
		t.Errorf("%d sent, %v", sent, err)
	}
	if n := (Task{Count: 100, Size: 64 << 10}).distinct(); n != 100 {
		t.Errorf("%d distinct large records, want 100", n)
	}
}

func TestPauseOfPartitions(t *testing.T) {
	at := func(ms int64, partition int) Told {
		return Told{At: ms * int64(time.Millisecond), Owned: partition, Event: true}
	}
	events := []Told{at(900, 0), at(100, 0), at(110, 1), at(120, 0), at(130, 1), at(400, 1), at(300, 0), at(500, 1)}
	got, err := pauseOf(events, int64(110*time.Millisecond), 2)
	if err != nil || got != 600*time.Millisecond {
		t.Errorf("got %v, %v, want 600ms", got, err)
	}
	if _, err := pauseOf(events, 0, 3); err == nil {
		t.Error("a partition without events went unnoticed")
	}
}

func TestResultIsTheLastLine(t *testing.T) {
	r, err := lastLine("some library says hello\n{\"rate\":5}\n")
	if err != nil || r["rate"] != 5 {
		t.Errorf("got %v, %v", r, err)
	}
	for _, text := range []string{"", "{}", "nothing"} {
		if _, err := lastLine(text); err == nil {
			t.Errorf("%q is a result", text)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0.85: "0.85", 1: "1", 12.345: "12.3", 512.6: "513", 71234: "71234", 0.0123456: "0.0123"} {
		if got := number(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}
