package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestStdinIsBounded(t *testing.T) {
	for _, tt := range []struct {
		in   string
		fits bool
	}{{"0123456789", true}, {"0123456789x", false}, {strings.Repeat("x", 1<<20), false}} {
		data, err := readAll(t.Context(), strings.NewReader(tt.in), 10)
		if (err == nil) != tt.fits || tt.fits && string(data) != tt.in || !tt.fits && (data != nil || !strings.Contains(err.Error(), "longer than 10 bytes")) {
			t.Errorf("%d bytes: %d bytes, %v", len(tt.in), len(data), err)
		}
	}
}

// Headers without an end are refused, not kept.
func TestHeadersOfRequestsAreBounded(t *testing.T) {
	s := newShop(t, nil)
	s.handled()
	w := s.start("worker", "--http", "127.0.0.1:0")
	defer w.stop()
	at := "http://" + w.find(`http listening.*addr=(\S+)`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Much", strings.Repeat("x", 200<<10))
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return // it closed the connection before all of it was sent
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %s", resp.Status)
	}
}
