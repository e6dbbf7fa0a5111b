package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
)

// A cut text is marked, not longer than the limit, and not empty, even if its bytes are not UTF-8.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		most     int
		want     text
	}{
		{"whole", "abc", 3, text{"abc", 3, false}},
		{"shorter", "abcd", 3, text{"abc", 4, true}},
		{"a character at the end", "abé", 3, text{"ab", 4, true}},
		{"a long one", "a😀b", 4, text{"a", 6, true}},
		{"no text", strings.Repeat("\x80", 9), 8, text{"\uFFFD", 9, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := cut(tt.in, tt.most); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A key may be as long as a record; a list of hundreds must not contain all of it.
func TestLongKeysAreShortened(t *testing.T) {
	s := newShop(t, 1, nil)
	long := strings.Repeat("k", 300<<10)
	o := s.own(long, long)
	o.bury(0, long, "no paper")
	o.park(1, long)
	_, err := s.orders.SendAfter(t.Context(), time.Hour, order{Customer: long})
	s.must(err)
	for _, path := range []string{"/api/events?stream=orders", "/api/dead?processor=orders/printer", "/api/parked?processor=orders/printer", "/api/delayed?stream=orders"} {
		if _, text := s.request(http.MethodGet, path, ""); len(text) > 5*recordInList || !strings.Contains(text, "kkk") {
			t.Errorf("%s: %d bytes", path, len(text))
		}
	}
	if of := get[listedEvents](s, "/api/events?stream=orders&limit=1&key="+long[:2*recordInList]); len(of.Events) != 0 {
		t.Errorf("%d events of a key with the same beginning", len(of.Events))
	}
}

// A quarantine's reason is the text of an error, of any length; samples contain it.
func TestLongReasonsAreShortened(t *testing.T) {
	s := lookOf(0, 0, "alpha")
	q := &inspect.QuarantineState{Reason: strings.Repeat("no ", 1<<20), Event: "5-0"}
	s.App.Streams[0].Processors[0].Partitions[0].Quarantine = q
	text, err := (&frame{sample: s}).encoded("orders/printer")
	var shown shownApp
	if err = errors.Join(err, json.Unmarshal(text, &shown)); err != nil || len(text) > 5*recordInList || shown.Detail.Notes[0].Quarantine.Event != "5-0" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if r := shown.Rules; len(r) != 1 || r[0].Kind != "quarantine" || r[0].Scope != "partition:orders/printer/0" || r[0].Event != "5-0" || r[0].Command != "quarantine release orders/printer --partition 0" {
		t.Errorf("%+v", r)
	}
	if len(q.Reason) < 1<<20 {
		t.Error("the quarantine itself was shortened")
	}
}
