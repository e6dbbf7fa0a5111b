package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

// find waits for a match on stderr, and returns its first group.
func (r *running) find(pattern string) (group string) {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	eventually(r.t, pattern, func() bool {
		m := re.FindStringSubmatch(r.err.String())
		if m != nil {
			group = m[1]
		}
		return m != nil
	})
	return group
}

func get(t *testing.T, url string) (code int, text string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// awaitCode waits until a page has a status code, and returns the page.
func awaitCode(t *testing.T, url string, want int) (text string) {
	t.Helper()
	eventually(t, url, func() bool {
		var code int
		code, text = get(t, url)
		return code == want
	})
	return text
}

// A worker is ready from when it owns its partitions until it drains, and alive until its end.
func TestWorkerServesProbesAndMetrics(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 4, KeyField: "customer"})
	hold, held := make(chan struct{}), make(chan struct{})
	s.orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for o := range events.Records() {
			if o.Customer == "wait" {
				close(held)
				<-hold
			}
		}
		return nil
	}, nil)
	worker := s.start("worker", "--http", "127.0.0.1:0", "--pprof")
	base := "http://" + worker.find(`http listening.*addr=(\S+)`)
	awaitCode(t, base+"/readyz", http.StatusOK)
	s.send(20)
	s.sends(order{Customer: "wait"})
	<-held
	_, text := get(t, base+"/metrics")
	for _, want := range []string{
		`runnel_up{app="shop"} 1`, `runnel_ready{app="shop"} 1`, `runnel_redis_up{app="shop"} 1`,
		`runnel_owned_partitions{app="shop",processor="printer",stream="orders"} 4`,
		`runnel_sent_records_total{app="shop",stream="orders"} 21`, "go_goroutines ",
	} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, "\n"+want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if code, text := get(t, base+"/debug/pprof/goroutine?debug=1"); code != http.StatusOK || !strings.Contains(text, "goroutine profile") {
		t.Errorf("profiles: %d %s", code, text)
	}
	for path, begins := range map[string]string{"profile?seconds=0.01": "\x1f\x8b", "trace?seconds=0.01": "go 1.", "heap": "\x1f\x8b"} {
		if code, text := get(t, base+"/debug/pprof/"+path); code != http.StatusOK || !strings.HasPrefix(text, begins) {
			t.Errorf("%s: %d %.20q", path, code, text)
		}
	}
	if code, text := get(t, base+"/debug/pprof/cmdline"); code != http.StatusNotFound || text != "no profile \"cmdline\"\n" {
		t.Errorf("the command line: %d %s", code, text)
	}
	if code, _ := get(t, base+"/nothing"); code != http.StatusNotFound {
		t.Errorf("a page that is not there: %d", code)
	}
	worker.cancel()
	if text := awaitCode(t, base+"/readyz", http.StatusServiceUnavailable); !strings.Contains(text, "draining") {
		t.Errorf("while draining: %s", text)
	}
	if code, text := get(t, base+"/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("while draining: %d %s", code, text)
	}
	close(hold)
	worker.stop().want(t, 0, "", "worker stopped")
	if _, err := http.Get(base + "/healthz"); err == nil {
		t.Error("the server outlives the worker")
	}
}

func TestWorkerHTTPMistakes(t *testing.T) {
	s := newShop(t, nil)
	s.run("worker", "--pprof").want(t, 2, "", "--pprof goes with --http")
	s.run("worker", "--http", "127.0.0.1:no").want(t, 1, "", "--http 127.0.0.1:no: ")
	t.Setenv(envHTTP, "127.0.0.1:no")
	s.run("worker").want(t, 1, "", "RUNNEL_HTTP 127.0.0.1:no: ")
	t.Setenv(envHTTP, "9090")
	s.run("worker").want(t, 2, "", `RUNNEL_HTTP "9090" is no address with a port`)
}

// A page of another origin cannot read through a name that resolves to this machine.
func TestALoopbackWorkerIsServedToThisMachine(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	open, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for _, tt := range []struct {
		on   net.Listener
		host string
		want int
	}{
		{listener, "evil.com", 421}, {listener, "evil.com:9090", 421}, {listener, "localhost.evil.com", 421},
		{listener, "localhost:9090", 200}, {listener, "127.0.0.1:9090", 200}, {listener, "[::1]:9090", 200}, {listener, "10.1.2.3:9090", 200},
		{open, "worker:9090", 200}, {open, "10.1.2.3:9090", 200},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = tt.host
		sameMachine(tt.on, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s at %s: %d, want %d", tt.host, tt.on.Addr(), w.Code, tt.want)
		}
	}
}

// The position of an error in a script is for the log, not for clients of a probe.
func TestAProbeLeavesOutPlacesInScripts(t *testing.T) {
	w := httptest.NewRecorder()
	answer(w, errors.New("refresh: WRONGTYPE wrong kind of value script: 0123456789abcdef0123456789abcdef01234567, on @user_script:17., trying again"))
	if got := w.Body.String(); w.Code != http.StatusServiceUnavailable || got != "refresh: WRONGTYPE wrong kind of value, trying again\n" {
		t.Errorf("%d %q", w.Code, got)
	}
}

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
