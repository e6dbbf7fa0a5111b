// The events of a key that fails keep their order, whatever bytes the key has and whatever the
// clock does.

package runnel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/runneltest"
)

// Keys are bytes of any kind and length: a key that is no UTF-8, or that is long,
// keeps its order over a change of owners, and waits for no other one.
func TestAKeyOfAnyBytesKeepsItsOrder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 1<<20)
	for _, tt := range []struct{ name, key, other string }{
		{"utf-8", "key", "yek"},
		{"not utf-8", "\xff\xfe\x01", "\xfe\xff\x01"},
		{"of 1 MB", long + "a", long + "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n notes
			fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
				n.add(fmt.Sprint(i.N, "#", e.Attempt))
				switch {
				case i.N == 1 && e.Attempt == 1:
					return runnel.RetryAfter(errBad, time.Minute)
				case i.N == 2:
					return runnel.DeadLetter(errBad)
				}
				return nil
			})
			key := func(i item) string { return []string{tt.key, tt.other}[i.N/10] }
			simulation{key: key}.run(t, fn, retrying(9, runnel.OrderKey), func(c *simulated) {
				a := ready(c.Cluster, "a")
				c.send(1)
				c.Sleep(time.Second)
				c.stop(a)
				ready(c.Cluster, "b")
				c.send(2, 11)
				c.Sleep(time.Second)
				wantNotes(t, &n, "1#1", "11#1")
				c.Sleep(2 * time.Minute)
				wantNotes(t, &n, "1#1", "11#1", "1#2", "2#1")
				o := operator(t, c.Cluster)
				defer o.Close()
				letters, err := o.DeadLetters(c.Context(), o.Partition("items", "p", 0), "", 10)
				if err != nil || len(letters) != 1 || letters[0].Key != tt.key {
					t.Errorf("dead letters %d, %v; want one with the key as it is", len(letters), err)
				}
			})
		})
	}
}

// What an earlier release stored of a key that is no UTF-8 is not the key. The event
// has it.
func TestKeysThatAnEarlierReleaseStoredAreFound(t *testing.T) {
	var n notes
	const key = "\xff\xfe\x01"
	fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		n.add(fmt.Sprint(i.N, "#", e.Attempt))
		if e.Attempt == 1 && i.N == 1 {
			return runnel.RetryAfter(errBad, time.Minute)
		}
		return nil
	})
	simulation{key: func(item) string { return key }}.run(t, fn, retrying(9, runnel.OrderKey), func(c *simulated) {
		a := ready(c.Cluster, "a")
		c.send(1)
		c.Sleep(time.Second)
		c.stop(a)
		o := operator(t, c.Cluster)
		defer o.Close()
		place := o.Partition("items", "p", 0)
		states, _, err := o.Retries(c.Context(), place)
		if err != nil || len(states) != 1 || !states[0].HasKey(key) || states[0].HasKey("\xfe\xff\x01") || states[0].Key != `\xff\xfe`+"\x01" {
			t.Fatalf("%+v, %v", states, err)
		}
		old := fmt.Sprintf("{\"v\":1,\"lane\":\"k\\ufffd\\ufffd\\u0001\",\"key\":\"\\ufffd\\ufffd\\u0001\",\"n\":1,\"first\":%d,\"last\":%d,\"at\":%d}", states[0].First, states[0].Last, states[0].At)
		c.must(c.Redis().HSet(c.Context(), place.Retry, states[0].ID, old).Err())
		ready(c.Cluster, "b")
		c.send(2)
		c.Sleep(2 * time.Minute)
		wantNotes(t, &n, "1#1", "1#2", "2#1")
	})
}

func TestLanesOfKeysAreTheirOwn(t *testing.T) {
	long := strings.Repeat("\x00", 5000)
	keys := []string{"", "k", "h", "\xff", "\xfe", `\xff`, "\ufffd", "\xff\xff", "日本", "日\xe6", long, long + "\x00", long[:1024], long[:1025]}
	var lanes []string
	for _, key := range keys {
		lane := store.KeyLane(key)
		if slices.Contains(lanes, lane) || len(lane) > 1025 || strings.ToValidUTF8(lane, "") != lane {
			t.Errorf("the lane of %.20q is %.20q", key, lane)
		}
		lanes = append(lanes, lane)
		if text := store.KeyText(key); len(text) > 1024+len("…") || strings.ToValidUTF8(text, "") != text {
			t.Errorf("for people %.20q is %.20q", key, text)
		}
	}
}

// The server's clock is set back by an hour while an event waits for its next attempt:
// the next owner lets it wait for as long as it was to wait, not for the hour too.
func TestARetryDoesNotWaitForAClockThatWasSetBack(t *testing.T) {
	for _, order := range []runnel.RetryOrder{runnel.OrderPartition, runnel.OrderKey} {
		var n notes
		at := make(chan time.Time, 1)
		fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			n.add(fmt.Sprint(i.N, "#", e.Attempt))
			if e.Attempt == 2 {
				at <- time.Now()
			}
			if e.Attempt == 1 && i.N == 1 {
				return runnel.RetryAfter(errBad, time.Minute)
			}
			return nil
		})
		cluster(t, 1, fn, retrying(9, order), func(c *runneltest.Cluster, send func(...int)) {
			a := ready(c, "a")
			send(1)
			c.Sleep(time.Second)
			if err := a.Stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
			o := operator(t, c)
			defer o.Close()
			place := o.Partition("items", "p", 0)
			for id, text := range c.Redis().HGetAll(c.Context(), place.Retry).Val() {
				var state map[string]any
				if err := json.Unmarshal([]byte(text), &state); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"first", "last", "at"} {
					state[name] = int64(state[name].(float64)) + time.Hour.Milliseconds()
				}
				ahead, _ := json.Marshal(state)
				if err := c.Redis().HSet(c.Context(), place.Retry, id, ahead).Err(); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			ready(c, "b")
			send(2)
			c.Sleep(2 * time.Minute)
			if order == runnel.OrderKey { // 2 is of another key
				wantNotes(t, &n, "1#1", "2#1", "1#2")
			} else {
				wantNotes(t, &n, "1#1", "1#2", "2#1")
			}
			if took := (<-at).Sub(began); took < time.Minute || took > time.Minute+10*time.Second {
				t.Errorf("the next attempt came after %v", took)
			}
		})
	}
}
