package admin

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzPosition parses any text: the result is a position of one kind, or an error.
func FuzzPosition(f *testing.F) {
	for _, text := range []string{"start", "end", "1-1", "18446744073709551615-1", "18446744073709551616", "@2026-01-31T08:00:00Z", "-1h30m", "-100", "+9223372036854775807", "-9223372036854775808", "@", ""} {
		f.Add(text)
	}
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parsePosition(text)
		if err != nil {
			return
		}
		said := 0
		for _, is := range []bool{at.id != "", at.when != nil, at.steps != 0} {
			if is {
				said++
			}
		}
		if said > 1 || said == 0 && strings.Trim(text, "+-0") != "" {
			t.Fatalf("%q is %+v", text, at)
		}
	})
}

func TestPositionsAreFoundAndSet(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		stream(t, c, "orders", "printer")
		p := c.Partition("orders", "printer", 2)
		pending(t, c, p, 4)
		must(t, c.Unlock(t.Context(), p, me))
		at := a.Positions("orders", "printer")
		for text, want := range map[string]string{"start": "0-0", "end": End, "3": "3-0", "2/3-0": "3-0", "@1970-01-01T00:00:00.003Z": "2-18446744073709551615", "+2": "2-0"} {
			got, err := at.Find(t.Context(), text, 2)
			must(t, err)
			if len(got) != 1 || got[2] != want {
				t.Errorf("%s is %v, want %s", text, got, want)
			}
		}
		for _, text := range []string{"", "yesterday", "9/1-0"} {
			if got, err := at.Find(t.Context(), text); err == nil {
				t.Errorf("%q is %v", text, got)
			}
		}
		would, err := at.Preview(t.Context(), map[int]string{2: End})
		must(t, err)
		did, err := at.Set(t.Context(), map[int]string{2: End})
		must(t, err)
		if len(did) != 1 || did[0].New != "4-0" || would[0].New != "4-0" {
			t.Errorf("moved %v, a preview was %v", did, would)
		}
		stands, err := at.List(t.Context())
		must(t, err)
		if stands[2] != "4-0" || len(stands) != 4 {
			t.Errorf("positions %v", stands)
		}
		for _, to := range []map[int]string{{}, {4: "0-0"}} {
			if _, err := at.Set(t.Context(), to); err == nil {
				t.Errorf("the position was set to %v", to)
			}
		}
	})
}
