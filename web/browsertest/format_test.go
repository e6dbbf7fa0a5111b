package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// Numbers look like those of the command line.
func TestFormats(t *testing.T) {
	s := newShop(t)
	b := newBrowser(t)
	b.open(s.url + "/")
	for call, want := range map[string]string{
		"count(0)": "0", "count(1234)": "1234", "count(12345)": "12\u202f345", "count(1234567)": "1\u202f234\u202f567", "count(null)": "–",
		"atLeast(1000, true)": ">1000", "atLeast(1000, false)": "1000",
		"rate(null)": "–", "rate(0)": "0", "rate(0.25)": "0.25", "rate(2.54)": "2.5", "rate(12.34)": "12.3", "rate(12345.6)": "12\u202f346",
		"duration(0)": "0ms", "duration(999)": "999ms", "duration(59999)": "59s", "duration(61000)": "1m1s", "duration(3661000)": "1h1m", "duration(180000000)": "2d2h",
		"age(5000, 0)": "–", "age(5000, 1)": "5s", "ranges([0,1,2,7])": "0-2,7", "ranges([])": "–", `plural(1, "event")`: "1 event", `plural(0, "event")`: "0 events",
		`moment("2026-01-31T08:00:00Z")`: "2026-01-31 08:00:00Z",
	} {
		var got string
		b.do(chromedp.Evaluate(fmt.Sprintf(`import("/assets/format.js").then((f) => f.%s)`, call), &got, awaitPromise))
		if got != want {
			t.Errorf("%s is %q, want %q", call, got, want)
		}
	}
	b.clean(s.url)
}

// The map of a processor with many partitions fits, and follows.
func TestManyPartitions(t *testing.T) {
	s := newShop(t)
	b := newBrowser(t)
	s.many(1024)
	b.open(s.url + "/#/processor/big/reader")
	b.await("the cells", `document.querySelectorAll(".small .cells .cell").length === 1024`)
	if high := eval[float64](b, `document.querySelector(".map").offsetHeight`); high > 900 {
		t.Errorf("the map is %v high", high)
	}
	s.must(s.client.Redis().XAdd(t.Context(), entryOf(s, "big", 1000)).Err())
	b.await("the new lag", `document.querySelector(".cell[data-partition='1000']").dataset.lag === "1"`)
	b.clean(s.url)
}
