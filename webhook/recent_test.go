package webhook

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// What was looked up is believed for a second since the look began, unless it was forgotten while that went on.
func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recent[int]
		looks := 0
		find := func() (int, error) {
			looks++
			time.Sleep(time.Second / 2)
			return looks, nil
		}
		want := func(value int) {
			t.Helper()
			if got, err := r.look("a", find); got != value || err != nil {
				t.Errorf("got %d, %v, want %d", got, err, value)
			}
		}
		want(1)
		time.Sleep(time.Second/2 - 1)
		want(1)
		time.Sleep(1)
		want(2)
		if _, err := r.look("b", func() (int, error) { return 7, errors.New("away") }); err == nil {
			t.Error("no error")
		}
		if _, ok := r.of("b"); ok {
			t.Error("what was not found is believed")
		}
		r.set("b", 8)
		if got, ok := r.of("b"); got != 8 || !ok {
			t.Errorf("got %d, %v", got, ok)
		}
		if got, _ := r.look("c", func() (int, error) { r.forget(); return 9, nil }); got != 9 {
			t.Errorf("got %d", got)
		}
		for _, key := range []string{"a", "b", "c"} {
			if _, ok := r.of(key); ok {
				t.Errorf("%s was not forgotten", key)
			}
		}
		for i := range 3 * mostKnown {
			r.set(fmt.Sprint(i), i)
		}
		if len(r.known) > mostKnown {
			t.Errorf("%d are known", len(r.known))
		}
	})
}
