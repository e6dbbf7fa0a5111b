package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/families"
	"github.com/runnel-go/runnel/internal/schedulers"
	"github.com/runnel-go/runnel/internal/sets"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
)

type parcel struct {
	Key string `json:"key"`
	Do  string `json:"do"`
}

var errDo = errors.New("told to fail")

// scrape returns the series of an app by name and labels.
func scrape(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatal(rec.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(rec.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(name, "runnel_") {
			series[strings.Replace(name, `app="shop"`, "", 1)+"}"] = value
		}
	}
	return series
}

// A shop prints parcels, some of which fail or wait, and ignores failures elsewhere.
type shop struct {
	server  *redistest.Server
	app     *runnel.App
	parcels *runnel.Stream[parcel]
	held    chan struct{} // closed when a parcel waits
	hold    chan struct{} // until this is closed
}

func newShop(t *testing.T) *shop {
	t.Helper()
	server := redistest.Start(t)
	app := runnel.New("shop", &runnel.Options{RedisURL: server.URL(), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { app.Close() })
	parcels := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: 4, Codec: codec.JSON})
	s := &shop{server, app, parcels, make(chan struct{}), make(chan struct{})}
	var once sync.Once
	parcels.Process("print", func(_ context.Context, events *runnel.Events[parcel]) error {
		for p := range events.Records() {
			switch p.Do {
			case "fail":
				return errDo
			case "wait":
				once.Do(func() { close(s.held) })
				<-s.hold
			}
		}
		return nil
	}, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: time.Millisecond}})
	parcels.Process("ignore", func(_ context.Context, events *runnel.Events[parcel]) error {
		for p := range events.Records() {
			if p.Do == "fail" {
				return errDo
			}
		}
		return nil
	}, &runnel.ProcessorOptions{OnError: runnel.Ignore})
	return s
}

// run runs the app until the test ends, or stop is called.
func run(t *testing.T, app *runnel.App) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	redistest.Eventually(t, "the worker is ready", func() bool { return app.Ready() == nil })
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestMetricsTellTheTruth(t *testing.T) {
	s := newShop(t)
	app, parcels := s.app, s.parcels
	handler := metrics.Handler(app, &metrics.Options{Partitions: 2})
	if got := scrape(t, handler)["runnel_up{}"]; got != "0" {
		t.Errorf("before Run: up is %q", got)
	}
	stop := run(t, app)
	send(t, parcels, 30, 2)
	if _, err := parcels.SendEvents(t.Context(), runnel.Outgoing[parcel]{Record: parcel{Key: "a"}, DedupID: "x"}, runnel.Outgoing[parcel]{Record: parcel{Key: "a"}, DedupID: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := parcels.Send(t.Context(), parcel{Key: "held", Do: "wait"}, parcel{Key: "held"}, parcel{Key: "held"}); err != nil {
		t.Fatal(err)
	}
	<-s.held
	const at = `{,processor="print",stream="parcels"}`
	got := settle(t, handler, map[string]string{
		"runnel_up{}": "1", "runnel_ready{}": "1", "runnel_redis_up{}": "1",
		`runnel_sent_records_total{,stream="parcels"}`: "36", `runnel_sent_duplicates_total{,stream="parcels"}`: "1",
		`runnel_send_failures_total{,outcome="refused",stream="parcels"}`: "0",
		"runnel_fetched_events_total" + at:                                "36", "runnel_processed_events_total" + at: "31", "runnel_acked_events_total" + at: "33",
		`runnel_failures_total{,policy="retry",processor="print",stream="parcels"}`: "6",
		"runnel_retried_events_total" + at:                                          "4", "runnel_dead_events_total" + at: "2", "runnel_stored_dead_letters" + at: "2",
		"runnel_lost_events_total" + at: "0", "runnel_owned_partitions" + at: "4", "runnel_assigned_partitions" + at: "4", "runnel_members" + at: "1", "runnel_partitions" + at: "4",
		"runnel_running_functions" + at: "1", "runnel_lag_events" + at: "3", "runnel_unacked_events" + at: "0",
		`runnel_acked_events_total{,processor="ignore",stream="parcels"}`:             "36",
		`runnel_failures_total{,policy="ignore",processor="ignore",stream="parcels"}`: "2",
		"runnel_event_delay_seconds_count" + at:                                       "31",
		`runnel_partition_epoch{,partition="2",processor="print",stream="parcels"}`:   "", // only two partitions have series
	})
	if got[`runnel_partition_lag_events{,partition="0",processor="print",stream="parcels"}`] == "" {
		t.Error("no series of partition 0")
	}
	close(s.hold)
	// Every attempt is timed; the delay is of every event but the two dead letters.
	settle(t, handler, map[string]string{"runnel_lag_events" + at: "0", "runnel_handler_seconds_count" + at: "40", "runnel_event_delay_seconds_count" + at: "34"})
	stop()
}

// send sends n records, some of which fail.
func send(t *testing.T, s *runnel.Stream[parcel], n, failing int) {
	t.Helper()
	for i := range n {
		if err := s.Send(t.Context(), parcel{Key: fmt.Sprint("k", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range failing {
		if err := s.Send(t.Context(), parcel{Key: fmt.Sprint("f", i), Do: "fail"}); err != nil {
			t.Fatal(err)
		}
	}
}

// settle scrapes until the series have the wanted values twice in a row: in one scrape the values
// from Redis may be newer than the worker's counters.
func settle(t *testing.T, h http.Handler, want map[string]string) (got map[string]string) {
	t.Helper()
	right := 0
	for deadline := time.Now().Add(20 * time.Second); right < 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		got, right = scrape(t, h), right+1
		for name, value := range want {
			if got[name] != value {
				right = 0
			}
		}
	}
	check(t, got, want)
	return got
}

func check(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

// Metrics that do not come from Redis are reported without it.
func TestMetricsWithoutRedis(t *testing.T) {
	s := newShop(t)
	handler := metrics.Handler(s.app, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.app.Run(ctx) }()
	redistest.Eventually(t, "the worker is ready", func() bool { return s.app.Ready() == nil })
	s.server.Kill()
	redistest.Eventually(t, "Redis is down", func() bool { return scrape(t, handler)["runnel_redis_up{}"] == "0" })
	const at = `{,processor="print",stream="parcels"}`
	redistest.Eventually(t, "errors of Redis are counted", func() bool {
		n := scrape(t, handler)["runnel_redis_errors_total"+at]
		return n != "0" && n != ""
	})
	check(t, scrape(t, handler), map[string]string{"runnel_up{}": "1", "runnel_lag_events" + at: "", "runnel_processed_events_total" + at: "0"})
	cancel()
	<-ended // with an error or not: nothing could be handed over
}

// everyFamily returns the metrics of the core and of extensions.
func everyFamily() []*families.Family {
	all := families.All()
	for _, e := range []*extension.Extension{sets.New(nil), schedulers.New(nil), buses.New(nil, nil)} {
		for _, m := range e.Metrics {
			prefix := "runnel_" + e.Name + "_"
			if m.OfApp {
				prefix = "runnel_app_" + e.Name + "_"
			}
			all = append(all, &families.Family{Name: prefix + m.Name, Help: m.Help, Kind: m.Kind, Labels: append([]string{"app"}, m.Labels...)})
		}
	}
	return all
}

// The document lists every metric, with its type and labels, and no other.
func TestDocumentNamesEveryMetric(t *testing.T) {
	text, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]families.Family{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(runnel_\\w+)` \\| (\\w+) \\| ([a-z, ]*) \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		labels := strings.Split("app, "+m[3], ", ")
		slices.Sort(labels)
		documented[m[1]] = families.Family{Name: m[1], Help: m[4] + ".", Kind: families.Kind(m[2]), Labels: slices.DeleteFunc(labels, func(l string) bool { return l == "" })}
	}
	for _, f := range everyFamily() {
		if got := documented[f.Name]; !reflect.DeepEqual(got, *f) {
			t.Errorf("docs/operating.md has %v, want %v", got, *f)
		}
		delete(documented, f.Name)
	}
	for name := range documented {
		t.Errorf("docs/operating.md lists %s, which does not exist", name)
	}
}

func TestHandlerServesTheRuntimeToo(t *testing.T) {
	app := runnel.New("shop", nil)
	defer app.Close()
	rec := httptest.NewRecorder()
	metrics.Handler(app, nil).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if got := rec.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("the content type is %q", got)
	}
	for _, want := range []string{"runnel_up{app=\"shop\"} 0\n", "# TYPE go_goroutines gauge\ngo_goroutines ", "\nprocess_start_time_seconds ", "\nprocess_open_fds "} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("no %q in %s", want, rec.Body)
		}
	}
}

// A scrape sends two requests to Redis for 256 partitions; further scrapes within a second send
// none.
func TestAScrapeIsCheap(t *testing.T) {
	server := redistest.Start(t)
	app := runnel.New("shop", &runnel.Options{RedisURL: server.URL(), Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	parcels := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: 256})
	parcels.Process("print", func(_ context.Context, events *runnel.Events[parcel]) error {
		for range events.Raw() {
			continue
		}
		return nil
	}, &runnel.ProcessorOptions{Lease: 10 * time.Minute})
	handler := metrics.Handler(app, nil)
	defer run(t, app)()
	send(t, parcels, 500, 0)
	const at = `{,processor="print",stream="parcels"}`
	redistest.Eventually(t, "nothing lags", func() bool { return scrape(t, handler)["runnel_lag_events"+at] == "0" })
	rdb := server.Client(t)
	if err := errors.Join(rdb.ConfigSet(t.Context(), "slowlog-max-len", "1000000").Err(), rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", "0").Err(),
		rdb.Do(t.Context(), "SLOWLOG", "RESET").Err()); err != nil {
		t.Fatal(err)
	}
	scripts := func() (n int) { // of looks, without the worker's own scripts
		for _, e := range redistest.SlowLog(t, rdb) {
			isLook := func(arg string) bool { return strings.HasPrefix(arg, "__dead:shop.parcels.print.") }
			if len(e.Args) > 0 && e.Args[0] == "evalsha" && slices.ContainsFunc(e.Args, isLook) {
				n++
			}
		}
		return n
	}
	began, scrapes := time.Now(), 0
	redistest.Eventually(t, "the server has executed a look", func() bool {
		check(t, scrape(t, handler), map[string]string{"runnel_owned_partitions" + at: "256", "runnel_lag_events" + at: "0"})
		scrapes++
		return scrapes >= 5 && scripts() > 0 // an earlier look may have been fresh
	})
	if n, most := scripts(), 2*(1+int(time.Since(began)/time.Second)); n < 2 || n > most {
		t.Errorf("%d scripts for %d scrapes, want %d", n, scrapes, most)
	}
}

// An event that cannot be decoded reaches no function, so it is no iteration.
func TestOnlyIterationsAreTimed(t *testing.T) {
	s := newShop(t)
	if err := s.parcels.Send(t.Context(), parcel{Do: "fail"}, parcel{}, parcel{}, parcel{}); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Client(t).Do(t.Context(), "XADD", "__strm:shop.parcels.0", "*", "data", "{").Err(); err != nil {
		t.Fatal(err)
	}
	handler := metrics.Handler(s.app, nil)
	defer run(t, s.app)()
	const at = `{,processor="ignore",stream="parcels"}`
	redistest.Eventually(t, "all is acked", func() bool { return scrape(t, handler)["runnel_acked_events_total"+at] == "5" })
	check(t, scrape(t, handler), map[string]string{
		"runnel_handler_seconds_count" + at: "4", "runnel_event_delay_seconds_count" + at: "5",
		`runnel_failures_total{,policy="ignore",processor="ignore",stream="parcels"}`: "2",
	})
}
