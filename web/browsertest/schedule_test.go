package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/schedule"
	"github.com/runnel-go/runnel/web"
)

var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// planned runs a worker over a job with runs in several states, for three days.
func planned(t *testing.T, s *shop) *runnel.App {
	app := runnel.New("office", &runnel.Options{RedisURL: s.redis.URL(), Logger: discard()})
	jobs := schedule.New(app, "jobs", &schedule.Options{Partitions: 3})
	does := func(ctx context.Context, r *schedule.Run) error {
		fmt.Fprintf(r.Log(), "%s of %s %s\n", r.Task, r.Time.Format(time.DateOnly), evil)
		switch r.Task {
		case "bad":
			return runnel.DeadLetter(errors.New("no paper: " + evil))
		case "skips":
			return schedule.Skip("nothing new")
		case "again":
			return errors.New("busy")
		case "long":
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	after := func(name string, sources ...string) schedule.Task {
		return schedule.Task{Name: name, After: sources, Do: does}
	}
	again := after("again", "trigger/day")
	again.Retry = &runnel.Retry{Max: 3, MinBackoff: time.Hour}
	long := after("long", "trigger/day")
	long.Limit = 1
	jobs.Job("report", schedule.Job{
		Triggers: []schedule.Trigger{{Name: "day", Every: 24 * time.Hour, Start: firstDay, End: firstDay.Add(72 * time.Hour)}},
		Tasks: []schedule.Task{
			after("orders", "trigger/day"), after("bad", "task/orders"), after("never", "task/bad", "task/orders"), after("skips", "trigger/day"), again, long,
		},
	})
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
	return app
}

// states returns what Redis has of the cells, by task and day.
func (s *shop) states() map[string]string {
	found := map[string]string{}
	for n := range 3 {
		for at, text := range s.redis.Client(s.t).HGetAll(s.t.Context(), fmt.Sprintf("__scell:office.jobs.%d", n)).Val() {
			var cell struct {
				S string
				E map[string][3]int
			}
			s.must(json.Unmarshal([]byte(strings.ReplaceAll(text, `"f":[]`, `"f":{}`)), &cell))
			found[at] = cell.S
		}
	}
	return found
}

func TestThePageOfSchedulers(t *testing.T) {
	s, b := newShop(t), newBrowser(t)
	app := planned(t, s)
	server := httptest.NewServer(web.Handler(app, &web.Options{Every: 500 * time.Millisecond, AllowActions: true, Token: token}))
	defer server.Config.Shutdown(t.Context()) // ends its streams
	b.open(server.URL + "/#/schedule/jobs/report")
	cell := func(task string, day int) string {
		return fmt.Sprintf(`document.querySelectorAll('[data-task="%s"] td')[%d]?.textContent`, task, day)
	}
	b.await("a failed run", cell("bad", 2)+` === "F"`)
	b.await("a run that is skipped", cell("skips", 0)+` === "k"`)
	b.await("one that waits for its next attempt", cell("again", 1)+` === "r"`)
	b.await("one that waits for its sources", cell("never", 1)+` === "w"`)
	b.await("one that runs, and others that are held", fmt.Sprintf(`[%s, %s, %s].sort().join("") === "Rhh"`, cell("long", 0), cell("long", 1), cell("long", 2)))
	letters := map[string]string{"waiting": "w", "held": "h", "running": "R", "retry": "r", "success": "S", "failed": "F", "skipped": "k"}
	for at, state := range s.states() {
		task, ms, _ := strings.Cut(strings.TrimPrefix(at, "report/task/"), "@")
		var unix int64
		fmt.Sscan(ms, &unix)
		day := int(time.UnixMilli(unix).Sub(firstDay) / (24 * time.Hour))
		b.await(at+" is as Redis has it", cell(task, day)+` === "`+letters[state]+`"`)
	}
	b.click(`[data-task="bad"] td:nth-of-type(3) a`)
	b.await("its error, as text", `document.querySelector("[data-run]")?.textContent.includes("no paper") && document.querySelector("[data-run]").textContent.includes("onerror")`)
	b.await("its log", `document.querySelector("[data-log]")?.textContent.includes("bad of 2026-01-03")`)
	if dir := os.Getenv(shotsVariable); dir != "" {
		b.do(chromedp.EmulateViewport(1280, 1100))
		b.shot(dir, "schedule.png")
		b.do(chromedp.EmulateViewport(360, 2400, chromedp.EmulateMobile))
		b.shot(dir, "schedule-phone.png")
	}
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	if w := eval[[]int](b, "[document.documentElement.scrollWidth, innerWidth]"); w[0] > w[1] || w[1] != 360 {
		t.Errorf("it is %d wide on a screen of %d", w[0], w[1])
	}
	b.do(chromedp.EmulateViewport(1280, 900))
	b.click(`[data-run] .filters button`)
	b.confirm(token, "paper is there", "Activate")
	b.await("what was done", `document.querySelector(".told")?.textContent.includes("activated: 2 tasks")`)
	b.await("the next attempt", `document.querySelector("[data-run] .figures")?.textContent.includes("2.1")`)
	b.click(`[data-job="jobs/report"] button`)
	b.confirm("", "repairs", "Pause")
	b.await("the pause", `document.querySelector('[data-job="jobs/report"] [data-label="held"]')?.textContent.startsWith("paused")`)
}
