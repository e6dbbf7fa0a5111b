package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
	"github.com/runnel-go/runnel/web"
)

// Each of the four documented users can do everything that the document lists, with its rights
// only. Denied commands are documented, too.
func TestTheDocumentedRightsSuffice(t *testing.T) {
	for layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, layout)
			s.everything(func() {})
			s.run(3, "shop-watcher", "doctor", "--role", "operator")
			if code, _, errs := s.command("shop-watcher", "pause", "orders", "--yet"); code != 1 || !strings.Contains(errs, "doctor --role operator` says which") {
				t.Errorf("pause by the watcher: code %d: %s", code, errs)
			}
		})
	}
}

// everything does all of it, and something between.
func (s *scene) everything(between func()) {
	s.t.Helper()
	s.storm()
	s.troubles()
	between()
	s.watch()
	s.operate()
	s.stopAndRemove()
	s.nothingElseDenied()
}

func (s *scene) nothingElseDenied() {
	s.t.Helper()
	for _, denied := range s.denials() {
		if !expected.MatchString(denied) {
			s.t.Errorf("denied: %s", denied)
		}
	}
}

// expected are denials that change nothing: attempts to find out what is permitted.
var expected = regexp.MustCompile(`^shop-\w+: command config\|get |^shop-(producer|watcher|operator): command client\|(unblock|kill|id|info) `)

// troubles has events fail, wait, and find their partition full.
func (s *scene) troubles() {
	s.t.Helper()
	_, sender := s.app("shop-producer")
	s.process("third", "shop-worker")
	ctx := s.t.Context()
	s.must(sender.orders.Send(ctx, order{"flaky1", 0}, order{"poison1", 0}, order{"poison2", 0}, order{"poison3", 0}))
	for _, want := range []bool{false, true} {
		sent, err := sender.orders.SendEvents(ctx, runnel.Outgoing[order]{Record: order{"once", 0}, DedupID: "only"})
		if s.must(err); sent[0].Duplicate != want {
			s.t.Errorf("duplicate: %v", sent[0].Duplicate)
		}
	}
	_, err := sender.orders.SendAfter(ctx, time.Millisecond, order{"soon", 0})
	s.must(err)
	_, err = sender.orders.SendEvents(ctx, runnel.Outgoing[order]{Record: order{"later", 0}, After: time.Hour, DedupID: "late"},
		runnel.Outgoing[order]{Record: order{"later", 1}, After: time.Hour})
	s.must(err)
	for seq := range 30 { // five have room, and then each waits for the ones before
		s.must(sender.small.Send(ctx, order{"s", seq}))
		s.must(sender.ring.Send(ctx, order{"r", seq}))
	}
	rejected := sender.strict.Send(ctx, make([]order, 10)...)
	if rejected != nil && !errors.Is(rejected, runnel.ErrStreamFull) {
		s.t.Error(rejected)
	}
	s.await("what was sent after all this", func() bool {
		return len(s.did("orders", "flaky1")) == 1 && len(s.did("orders", "once")) == 1 && len(s.did("orders", "soon")) == 1 && len(s.did("small", "s")) == 30
	})
	s.await("the durable task", func() bool { return s.journal.Client(s.t).Get(ctx, "ticks").Val() != "" })
	s.await("dead letters, parked events and quarantines", func() bool {
		var parked, dead, stopped int64
		for n := range 4 {
			parked += s.admin.HLen(ctx, s.keys().Retry("orders", "invoicer", n)).Val()
			dead += s.admin.XLen(ctx, s.keys().Dead("orders", "printer", n)).Val()
			stopped += s.admin.HStrLen(ctx, s.keys().Ownership("orders", "auditor", n), "quarantine").Val()
		}
		return parked >= 3 && dead == 3 && stopped > 0
	})
}

func (s *scene) keys() keys.Keys { return keys.Keys{App: "shop", Layout: layouts[s.layout]} }

// watch looks at all there is to see.
func (s *scene) watch() {
	s.t.Helper()
	const user = "shop-watcher"
	for _, command := range []string{
		"status", "status orders/printer --output wide", "workers ls", "stream ls", "stream info orders", "processor ls", "processor info orders/printer",
		"tail orders", "tail orders --from start --grep k1", "rules ls", "parked ls orders/invoicer", "dead ls orders/printer",
		"delayed ls orders", "audit ls", "top --every 1s",
	} {
		if command == "top --every 1s" {
			s.top(user)
			continue
		}
		s.run(0, user, strings.Fields(command)...)
	}
	s.run(3, user, "check") // partitions are quarantined
	s.run(0, user, "stream", "verify", "orders")
	s.run(0, user, "dead", "show", "orders/printer", "--limit", "1")
	for _, role := range []string{"producer", "worker", "watcher", "operator"} {
		if out := s.run(0, "shop-"+role, "doctor", "--role", role); !strings.Contains(out, "no CONFIG GET") || strings.Contains(out, "lacks") {
			s.t.Errorf("doctor of the %s: %s", role, out)
		}
	}
	app, _ := s.app(user)
	server := httptest.NewServer(web.Handler(app, nil))
	defer server.Close()
	for _, path := range []string{"api/live", "api/dead?processor=orders/printer", "api/parked?processor=orders/invoicer", "api/delayed?stream=orders", "api/events?stream=orders", "api/audit"} {
		s.look(server.URL + "/" + path)
	}
	s.scrape()
}

// top is a view of a second.
func (s *scene) top(user string) {
	app, _ := s.app(user)
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	code, out, errs := mainOf(ctx, app, "top", "--every", "1s")
	if code != 0 || !strings.Contains(out, "printer") || strings.Contains(out+errs, "NOPERM") {
		s.t.Errorf("top: code %d: %s%s", code, out, errs)
	}
}

// look asks the dashboard; of a stream of events the first part.
func (s *scene) look(url string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), redistest.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	s.must(err)
	resp, err := http.DefaultClient.Do(r)
	s.must(err)
	defer resp.Body.Close()
	part := make([]byte, 8<<10)
	n, _ := io.ReadAtLeast(resp.Body, part, 1)
	if text := string(part[:n]); resp.StatusCode != 200 || n == 0 || strings.Contains(text, "NOPERM") {
		s.t.Errorf("%s: %d %s", url, resp.StatusCode, text)
	}
}

// scrape asks a worker for its metrics.
func (s *scene) scrape() {
	s.t.Helper()
	app, _ := s.app("shop-worker")
	ctx, stop := context.WithCancel(s.t.Context())
	handler, ended := metrics.Handler(app, nil), make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	s.await("a worker to own its share", func() bool { return app.Ready() == nil })
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(rec.Body.String(), `runnel_redis_up{app="shop"} 1`) || !strings.Contains(rec.Body.String(), "runnel_lag_events") {
		s.t.Errorf("metrics: %s", rec.Body)
	}
	stop()
	s.must(<-ended)
}

// operate changes what operators change, with commands and in the dashboard.
func (s *scene) operate() {
	s.t.Helper()
	const user = "shop-operator"
	for _, command := range []string{
		"pause orders/printer --why work --wait", "resume orders/printer", "block orders/printer --partition 1 --as-admin",
		"unblock orders/printer --partition 1 --as-admin", "workers drain third", "workers undrain third", "processor move orders/printer 1 second",
		"processor move orders/printer 1 --unpin", "parked retry orders/invoicer --key poison1", "parked drop orders/invoicer --key poison2 --yes",
		"dead drop orders/printer --key poison2 --yes", "dead replay orders/printer --key poison1 --to copies --yes", "dead retry orders/printer --key poison3",
	} {
		s.run(0, user, strings.Fields(command)...)
	}
	s.run(0, user, "send", "orders", `{"key":"sent","seq":0}`)
	s.run(0, user, "send", "orders", `{"key":"sent","seq":1}`, "--after", "1h")
	s.await("what was sent", func() bool { return len(s.did("orders", "sent")) == 1 })
	var waiting []struct{ ID string }
	s.must(json.Unmarshal([]byte(s.run(0, user, "delayed", "ls", "orders", "--output", "json")), &waiting))
	if len(waiting) != 3 {
		s.t.Fatalf("%d delayed events", len(waiting))
	}
	s.run(0, user, "delayed", "fire", "orders", waiting[0].ID)
	s.run(0, user, "delayed", "cancel", "--yes", "orders", waiting[1].ID)
	for n := range 4 {
		if s.admin.HExists(s.t.Context(), s.keys().Ownership("orders", "auditor", n), "quarantine").Val() {
			s.run(0, user, "quarantine", "release", "orders/auditor", "--partition", fmt.Sprint(n), "--skip", "--yes")
		}
	}
	s.act("pause", `{"who":"ann","scope":"stream:orders","for":"1s"}`)
	s.act("resume", `{"who":"ann","scope":"stream:orders"}`)
	s.act("cancel", fmt.Sprintf(`{"who":"ann","stream":"orders","ids":[%q]}`, waiting[2].ID))
	if out := s.run(0, user, "audit", "ls"); strings.Count(out, " done ") != 3 || !strings.Contains(out, "cancel") {
		s.t.Errorf("audit: %s", out)
	}
}

// act does something from the dashboard.
func (s *scene) act(name, body string) {
	s.t.Helper()
	const token = "a token for actions"
	app, _ := s.app("shop-operator")
	server := httptest.NewServer(web.Handler(app, &web.Options{AllowActions: true, Token: token}))
	defer server.Close()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, server.URL+"/api/actions/"+name, strings.NewReader(body))
	s.must(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Runnel-Dashboard", "1")
	r.Header.Set("X-Runnel-Token", token)
	resp, err := http.DefaultClient.Do(r)
	s.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if s.must(err); resp.StatusCode != 200 || strings.Contains(string(text), "error") {
		s.t.Errorf("%s: %d %s", name, resp.StatusCode, text)
	}
}

// stopAndRemove stops the workers, and does what needs that none run.
func (s *scene) stopAndRemove() {
	s.t.Helper()
	for _, w := range s.workers[1:] { // the first one was killed
		s.must(w.Process.Signal(os.Interrupt))
		if err := w.Wait(); err != nil {
			s.t.Errorf("a worker stops: %v", err)
		}
	}
	const user = "shop-operator"
	file := filepath.Join(s.t.TempDir(), "positions.json")
	for _, command := range []string{
		"processor reset orders/printer --to start --yes --export " + file, "processor reset orders/printer --to -10 --dry-run",
		"processor reset orders/printer --to @2026-01-01T00:00:00Z --yes", "processor reset orders/printer --yes --import " + file,
		"processor rm orders/invoicer --yes --dead", "stream rm orders --yes", "stream rm ring --yes", "stream ls",
	} {
		s.run(0, user, strings.Fields(command)...)
	}
	for _, key := range []string{s.keys().Meta("orders"), s.keys().Partition("orders", 0)} {
		if n, err := s.admin.Exists(s.t.Context(), key).Result(); n != 0 || err != nil {
			s.t.Errorf("%s is left: %d, %v", key, n, err)
		}
	}
}
