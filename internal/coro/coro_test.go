package coro

import (
	"errors"
	"runtime"
	"slices"
	"testing"
)

func TestItemsAndRequestsAlternate(t *testing.T) {
	var got []string
	l := New(func(ask func(int) (string, bool)) error {
		for i := 1; ; i++ {
			s, ok := ask(i)
			if !ok {
				return errors.New("ended")
			}
			got = append(got, s)
		}
	})
	for want, item := range []string{"", "a", "b"} {
		if w, asked := l.Resume(item); !asked || w != want+1 {
			t.Fatalf("Resume(%q) = %d, %v, want %d, true", item, w, asked, want+1)
		}
	}
	if err := l.Stop(); err == nil || err.Error() != "ended" {
		t.Errorf("Stop() = %v", err)
	}
	if want := []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := l.Stop(); err == nil {
		t.Error("the second Stop forgot the result")
	}
}

func TestAskAfterTheEndAnswersFalse(t *testing.T) {
	var stale func(int) (string, bool)
	l := New(func(ask func(int) (string, bool)) error { stale = ask; return nil })
	if _, asked := l.Resume(""); asked {
		t.Fatal("asked without asking")
	}
	if _, ok := stale(1); ok {
		t.Error("an ended loop gave an item")
	}
}

func TestPanicComesOutOfResume(t *testing.T) {
	l := New(func(ask func(int) (string, bool)) error {
		ask(1)
		panic("boom")
	})
	l.Resume("")
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("recovered %v, want boom", v)
		}
	}()
	l.Resume("x")
	t.Error("no panic")
}

func TestGoexitIsNoSuccess(t *testing.T) {
	l := New(func(ask func(int) (string, bool)) error {
		ask(1)
		runtime.Goexit()
		return nil
	})
	l.Resume("")
	ended := make(chan struct{})
	go func() { // it ends this goroutine too
		defer close(ended)
		l.Resume("x")
	}()
	<-ended
	if _, asked := l.Resume("y"); asked || !errors.Is(l.Err(), ErrExited) {
		t.Errorf("asked %v, err %v, want false, ErrExited", asked, l.Err())
	}
}

func BenchmarkResume(b *testing.B) {
	l := New(func(ask func(int) (int, bool)) error {
		for {
			if _, ok := ask(1); !ok {
				return nil
			}
		}
	})
	l.Resume(0)
	b.ReportAllocs()
	for i := range b.N {
		l.Resume(i)
	}
	if err := l.Stop(); err != nil {
		b.Fatal(err)
	}
}
