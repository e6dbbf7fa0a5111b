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
		time.Sleep(time.Second/2 - time.Nanosecond)
		want(1)
		time.Sleep(time.Nanosecond)
		want(2)
		if _, err := r.look("b", func() (int, error) { return 7, errors.New("away") }); err == nil {
			t.Error("no error")
		}
		found := func(value int) func() (int, error) { return func() (int, error) { return value, nil } }
		for _, value := range []int{8, 9} { // what was not found is not believed
			if got, _ := r.look("b", found(value)); got != 8 {
				t.Errorf("got %d", got)
			}
		}
		if got, _ := r.look("c", func() (int, error) { r.forget(); return 9, nil }); got != 9 {
			t.Errorf("got %d", got)
		}
		for _, key := range []string{"a", "b", "c"} {
			if got, _ := r.look(key, found(10)); got != 10 {
				t.Errorf("%s was not forgotten", key)
			}
		}
		for i := range 3 * mostKnown {
			_, _ = r.look(fmt.Sprint(i), found(i))
		}
		if len(r.known) > mostKnown {
			t.Errorf("%d are known", len(r.known))
		}
	})
}
