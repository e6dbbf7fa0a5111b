package browsertest

import (
	"context"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/web"
)

type sale struct {
	Customer string
	Amount   float64
}

type total struct {
	Customer string
	Sum      float64
}

// The page of a processor has its tables, and the row of a key, as text.
func TestThePageOfAProcessorWithTables(t *testing.T) {
	s, b := newShop(t), newBrowser(t)
	app := runnel.New("till", &runnel.Options{RedisURL: s.redis.URL(), Logger: discard()})
	sales := runnel.NewStream(app, "sales", func(o sale) string { return o.Customer }, &runnel.StreamOptions{Partitions: 4})
	totals := runnel.NewTable[total](sales, "totals", nil)
	sales.Process("sum", runnel.Each(func(ctx context.Context, _ *runnel.Event, o sale) error {
		totals.Rows(ctx).Update(o.Customer, func(row total) total { return total{o.Customer, row.Sum + o.Amount} })
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{totals}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		app.Close()
	})
	s.must(sales.Send(t.Context(), sale{"ada", 1}, sale{evil, 2}, sale{evil, 3}))
	redistest.Eventually(t, "all is summed", func() bool {
		ada, _, err := totals.Get(t.Context(), "ada")
		s.must(err)
		other, _, err := totals.Get(t.Context(), evil)
		s.must(err)
		return ada.Sum == 1 && other.Sum == 5
	})
	server := httptest.NewServer(web.Handler(app, &web.Options{Every: 500 * time.Millisecond}))
	defer server.Config.Shutdown(t.Context()) // ends its streams
	b.open(server.URL + "/#/processor/sales/sum")
	b.await("its table", `document.querySelector('[data-table="totals"] [data-label="rows"]')?.textContent === "2"`)
	b.fill(".filters input[name=key]", evil)
	b.click("Search")
	b.await("the row", `document.querySelector('[aria-label="rows"] pre.record')?.textContent.includes('"Sum": 5')`)
	b.await("its key, as text", `document.querySelector('[aria-label="rows"] pre.record').textContent.includes("onerror")`)
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	if w := eval[[]int](b, "[document.documentElement.scrollWidth, innerWidth]"); w[0] > w[1] || w[1] != 360 {
		t.Errorf("it is %d wide on a screen of %d", w[0], w[1])
	}
	b.clean(server.URL)
	if dir := os.Getenv(shotsVariable); dir != "" {
		b.do(chromedp.EmulateViewport(1280, 1700))
		b.shot(dir, "tables.png")
	}
}
