package security

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
	"github.com/runnel-go/runnel/web"
)

const (
	password = "hunter2-sesame"
	token    = "a token that must not be seen"
)

// discreet fails if a text contains the password or the token.
func discreet(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{password, "hunter2", "sesame", token} {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows %q: %s", where, secret, text)
			return
		}
	}
}

// Whatever is wrong with a URL, from any source, no part of the password is shown.
func TestMalformedURLsShowNoPassword(t *testing.T) {
	for _, url := range []string{
		"redis://user:" + password + "@host:port", "redis://:" + password + "@host:1/x", "redis://:hunter2?sesame@host:1", "redis://:hunter2#sesame@host:1",
		"redis://:hunter2/sesame@host:1", "redis://:1#hunter2@host:2", "redis://:hunter2@sesame@host:1/x", "redis://:" + password, "redis://user:" + password, "redis://user:" + password + "/0",
		password, "h:" + password, "hunter2:sesame", "hunter2.sesame:6379", "hunter2/sesame", "hunter2?sesame", "hunter2://sesame@host", "redis:" + password,
		"redis:" + password + "@host", password + "@host:1", "http://:" + password + "@host", "://:" + password + "@host", "redis://:" + password + "%zz@host",
		"redis://:" + password + "@[::1", "redis://host?password=x@" + password, "redis://:" + password + "@host?password=" + password, "rediss://:" + password + "@host?skip_verify=maybe",
		"redis://:" + password + "@host?db=x", "unix://:" + password + "@", "redis://:" + password + "@127.0.0.1:1", "redis://u:" + password + "@127.0.0.1:1?read_timeout=1ms",
	} {
		said := func(how string, err error) {
			t.Helper()
			if err == nil {
				t.Errorf("%s by %s: no error", url, how)
				return
			}
			discreet(t, how, fmt.Sprintf("%v %+v %#v", err, err, err.Error()))
		}
		ctx, cancel := context.WithCancel(t.Context())
		byCode := runnel.New("shop", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
		said("code", runnel.NewStream(byCode, "orders", func(o order) string { return o.Key }, nil).Send(ctx, order{}))
		byCode.Close()
		t.Setenv("RUNNEL_REDIS_URL", url)
		byEnv := runnel.New("shop", &runnel.Options{Logger: slog.New(slog.DiscardHandler)})
		said("environment", runnel.NewStream(byEnv, "orders", func(o order) string { return o.Key }, nil).Send(ctx, order{}))
		byEnv.Close()
		cancel()
		lines := [][]string{{"status", "--redis-url", url}, {"status"}, {"--redis-url=" + url, "send"}}
		if url == "redis://:"+password+"@127.0.0.1:1" { // in a wrong place
			lines = append(lines, []string{"status", url}, []string{"status", "orders", url}, []string{"check", "--max-lag", url}, []string{"worker", "--http", url}, []string{"dashboard", "--addr", url})
		}
		for _, args := range lines {
			code, out, errs := mainOf(t.Context(), runnel.New("shop", nil), args...)
			if code == 0 {
				t.Errorf("%q: code 0", args)
			}
			discreet(t, strings.Join(args[:1], " "), out+errs)
		}
	}
}

// An error reply that repeats an unknown command is not passed on.
func TestRepliesThatRepeatThePassword(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go repeat(conn)
		}
	}()
	app := runnel.New("shop", &runnel.Options{RedisURL: "redis://user:" + password + "@" + l.Addr().String(), Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Key }, nil)
	for _, err := range []error{app.Run(t.Context()), orders.Send(t.Context(), order{"a", 1})} {
		if err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("got %v", err)
		}
		discreet(t, "the error", fmt.Sprint(err))
	}
}

// repeat answers every command as Redis answers an unknown one.
func repeat(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	number := func() int {
		line, err := in.ReadString('\n')
		if err != nil {
			return -1
		}
		n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
		return n
	}
	for n := number(); n > 0; n = number() {
		var words []string
		for range n {
			word := make([]byte, number()+2)
			if _, err := io.ReadFull(in, word); err != nil {
				return
			}
			words = append(words, string(word[:len(word)-2]))
		}
		fmt.Fprintf(conn, "-ERR unknown command '%s', with args beginning with: '%s'\r\n", words[0], strings.Join(words[1:], "' '"))
	}
}

// Neither a working app nor one that loses its server shows the password or the token in the log at
// any level, metrics, commands, dashboard or audit.
func TestThePasswordIsNeverShown(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	do(t, admin, "ACL SETUSER shop on >"+password+" ~* +@all")
	t.Setenv("RUNNEL_DASHBOARD_TOKEN", token)
	url := "redis://shop:" + password + "@" + server.Addr()
	worker, log := secretWorker(t, server, url)
	app, _ := declare(&runnel.Options{RedisURL: url, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, admin)
	defer app.Close()
	run := func(args ...string) {
		t.Helper()
		_, out, errs := mainOf(t.Context(), app, append(args, "--log-level", "debug")...)
		discreet(t, strings.Join(args, " "), out+errs)
	}
	everything := [][]string{
		{"status"}, {"status", "--output", "json"}, {"doctor"}, {"doctor", "--output", "json"}, {"workers", "ls", "--output", "json"}, {"stream", "info", "orders"}, {"audit", "ls"}, {"version", "--output", "json"},
		{"stream", "ls"}, {"check"}, {"rules", "ls"}, {"processor", "info", "orders/printer"}, {"send", "orders", "{}", "--key", "a"}, {"worker", "--http", "127.0.0.1:bad"},
	}
	for _, args := range everything {
		run(args...)
	}
	show := func(url string) {
		t.Helper()
		resp, err := http.Get(url)
		if err != nil {
			return // the worker may be gone
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		discreet(t, url, string(text))
	}
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
		show(worker + path)
	}
	dash := httptest.NewServer(web.Handler(app, &web.Options{AllowActions: true, Token: token}))
	defer dash.Close()
	for _, path := range []string{"/", "/api/dead?processor=orders/printer", "/api/events?stream=orders", "/api/audit", "/api/delayed?stream=orders"} {
		show(dash.URL + path)
	}
	do(t, admin, "ACL SETUSER shop resetpass >another") // and all who are connected go
	do(t, admin, "CLIENT KILL USER shop")
	for _, args := range everything {
		run(args...)
	}
	show(worker + "/readyz")
	rec := httptest.NewRecorder()
	metrics.Handler(app, nil).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	discreet(t, "metrics", rec.Body.String())
	settings, err := json.Marshal(map[string]any{"app": app.Name(), "ready": fmt.Sprint(app.Ready())})
	discreet(t, "the app", fmt.Sprintf("%s %v", settings, err))
	discreet(t, "the log", log.String())
	if !strings.Contains(log.String(), "worker started") || !strings.Contains(log.String(), "shop") {
		t.Errorf("no log: %s", log)
	}
}

// secretWorker starts a worker whose command line has the password, and returns where it
// serves, and its log at the level debug.
func secretWorker(t *testing.T, server *redistest.Server, url string) (at string, log *redistest.Log) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log = &redistest.Log{}
	cmd := exec.Command(self, "worker", "--redis-url", url, "--http", "127.0.0.1:0", "--pprof", "--log-level", "debug")
	cmd.Env = append(os.Environ(), journalEnv+"="+redistest.Start(t).URL())
	cmd.Stderr, cmd.Stdout = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &scene{t: t, server: server}
	serving := regexp.MustCompile(`http listening.*addr=(\S+)`)
	s.await("the worker", func() bool {
		return serving.MatchString(log.String()) && strings.Contains(log.String(), "worker started")
	})
	return "http://" + serving.FindStringSubmatch(log.String())[1], log
}

// A panic at registration, or for an option of a wrong type, does not show other settings.
func TestPanicsShowNoPassword(t *testing.T) {
	shared := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, Password: password})
	defer shared.Close()
	err := runnel.NewStream(runnel.New("shop", &runnel.Options{Redis: shared}), "orders", func(o order) string { return o.Key }, nil).Send(t.Context(), order{})
	discreet(t, "a ring", fmt.Sprint(err))
	for _, o := range []*runnel.Options{
		{RedisURL: "redis://:" + password + "@host", LeaderPoll: 1}, {RedisURL: "redis://:" + password + "@host", KeyLayout: "odd"},
		{RedisURL: "redis://:" + password + "@host", Stream: runnel.StreamOptions{Partitions: -1}},
	} {
		func() {
			defer func() { discreet(t, "the panic", fmt.Sprint(recover())) }()
			cli.Main(t.Context(), runnel.New("shop", o), nil, strings.NewReader(""), io.Discard, io.Discard)
			t.Error("no panic")
		}()
	}
	defer func() { discreet(t, "the panic", fmt.Sprint(recover())) }()
	web.Handler(runnel.New("shop", nil), &web.Options{AllowActions: true, Token: "sesame"})
}
