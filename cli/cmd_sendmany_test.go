package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// jsonLines returns n orders of five customers, one per line.
func jsonLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"customer\":\"c%d\",\"amount\":%d}\n", i%5, i)
	}
	return b.String()
}

func TestSendManyKeepsTheOrder(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{KeyField: "customer", Codec: codec.JSON})
	const n = 3500 // several batches
	path := file(t, "a.ndjson", jsonLines(n))
	s.run("sendmany", "orders", path).want(t, 0, "sent 3500, failed 0\n", "")
	s.untyped("sendmany", path, "--output", "json").want(t, 2, "", "at least one file")
	s.untyped("sendmany", "orders", path, "--output", "json").want(t, 0, `{"sent":3500,"failed":0,"unknown":0}`, "")
	next := map[string]int{}
	total := 0
	for key, entries := range s.entries() {
		for _, e := range entries {
			var customer, amount int
			text, _ := e.Values["data"].(string)
			if text == "" {
				text, _ = e.Values["json"].(string)
			}
			if _, err := fmt.Sscanf(text, `{"customer":"c%d","amount":%d}`, &customer, &amount); err != nil {
				t.Fatalf("%s: %v: %v", key, e, err)
			}
			name := fmt.Sprint(customer)
			if want := (customer + 5*next[name]) % n; amount != want {
				t.Fatalf("%s: customer %d: amount %d, want %d", key, customer, amount, want)
			}
			next[name]++
			total++
		}
	}
	if total != 2*n {
		t.Errorf("%d entries, want %d", total, 2*n)
	}
}

func TestSendManyReportsBadLines(t *testing.T) {
	s := newShop(t, nil)
	text := "\ufeff{\"customer\":\"a\"}\n\n  \t\r\n{\"custmer\":\"b\"}\r\n{\"customer\":\"c\"}\r\n{\n{\"customer\":\"d\"}"
	a, b := file(t, "a.ndjson", text), file(t, "b.ndjson", text)

	r := s.run("sendmany", "orders", a)
	r.want(t, 1, "sent 3, failed 2\n", "line 4: ")
	if want := []string{"line 4: ", "line 6: "}; !hasPrefixes(r.err, want) {
		t.Errorf("stderr %q, want lines beginning with %q", r.err, want)
	}
	r = s.run("sendmany", "orders", a, b)
	r.want(t, 1, "sent 6, failed 4\n", b+": line 6: ")
	if want := []string{a + ": line 4: ", a + ": line 6: ", b + ": line 4: ", b + ": line 6: "}; !hasPrefixes(r.err, want) {
		t.Errorf("stderr %q, want lines beginning with %q", r.err, want)
	}
}

func hasPrefixes(text string, prefixes []string) bool {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != len(prefixes) {
		return false
	}
	for i, p := range prefixes {
		if !strings.HasPrefix(lines[i], p) {
			return false
		}
	}
	return true
}

func TestSendManyStopsOnError(t *testing.T) {
	for _, typed := range []bool{true, false} {
		s := newShop(t, nil)
		s.sends(order{})
		send := s.untyped
		if typed {
			send = s.run
		}
		path := file(t, "a.ndjson", jsonLines(16)+"{\"x\":1}\n"+jsonLines(2000))
		r := send("sendmany", "--stop-on-error", "orders", path)
		r.want(t, 1, "sent 16, failed 1\n", "line 17: ")
		n := 0
		for _, entries := range s.entries() {
			n += len(entries)
		}
		if n != 17 {
			t.Errorf("%d entries, want the first one and 16", n)
		}
	}
}

func TestSendManyChecksFilesFirst(t *testing.T) {
	s := newShop(t, nil)
	path := file(t, "a.ndjson", jsonLines(3))
	s.run("sendmany", "orders", path, path+".no").want(t, 1, "", "nothing was sent: open")
	s.run("sendmany", "orders", path, filepath.Dir(path)).want(t, 1, "", "is a directory")
	s.run("sendmany", "orders", "-", "-").want(t, 1, "", "only once")
	if n := len(s.entries()); n != 0 {
		t.Errorf("%d partitions have entries", n)
	}
}

// A JSON array is refused by its first character, since it may be one line of any length.
func TestSendManyRefusesAnArray(t *testing.T) {
	s := newShop(t, nil)
	const hint = "this is a JSON array, and a record per line is needed: `jq -c '.[]'` makes lines of it; nothing of it was sent"
	pretty := file(t, "pretty.json", "\ufeff\n[\n {\"customer\":\"ada\"},\n {\"customer\":\"bob\"}\n]\n")
	for _, send := range []func(...string) result{s.run, s.untyped} {
		send("sendmany", "orders", pretty).want(t, 1, "sent 0, failed 0", pretty+": "+hint)
	}
	run(t.Context(), s.app, `[{"customer":"ada"}]`, "sendmany", "orders", "-").want(t, 1, "sent 0, failed 0", "standard input: "+hint)

	long := &endless{line: []byte(`[{"customer":"ada"},`), left: 50 << 20}
	b := fakeBulk(long, io.Discard, nil)
	if err := b.run(t.Context(), []string{"-"}); err == nil || long.left < 50<<20-readBuffer {
		t.Errorf("%v, %d lines left", err, long.left)
	}

	app := runnel.New("shop", &runnel.Options{RedisURL: s.url})
	defer app.Close()
	runnel.NewStream(app, "lists", func(l []int) string { return fmt.Sprint(len(l)) }, nil)
	run(t.Context(), app, "[1]\n[2,3]\n", "sendmany", "lists", "-").want(t, 0, "sent 2, failed 0", "")
}

func TestSendManyWithAKey(t *testing.T) {
	s := newShop(t, nil)
	run(t.Context(), s.app, jsonLines(10), "sendmany", "orders", "-", "--key", "eve").want(t, 0, "sent 10, failed 0", "")
	at := fmt.Sprint("__strm:shop.orders.", runnel.XXHash.Func("eve", 16))
	if n := len(s.entries()[at]); n != 10 {
		t.Errorf("%d entries in %s", n, at)
	}
}

// A record that cannot be encoded fails alone.
func TestSendManyRecordThatCannotBeEncoded(t *testing.T) {
	server := redistest.Start(t)
	app := runnel.New("shop", &runnel.Options{RedisURL: server.URL()})
	defer app.Close()
	runnel.NewStream(app, "orders", func(o order) string {
		if o.Customer == "c3" {
			panic("no key for c3")
		}
		return o.Customer
	}, nil)
	r := run(t.Context(), app, jsonLines(10), "sendmany", "orders", "-")
	r.want(t, 1, "sent 8, failed 2\n", "line 4: ")
	if !hasPrefixes(r.err, []string{"line 4: key function: panic: no key for c3", "line 9: key function: panic: no key for c3"}) {
		t.Errorf("stderr %q", r.err)
	}
}

func TestSendManyUnknownOutcome(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	s := shopAt(t, "redis://"+proxy.Addr(), server.Client(t), &runnel.StreamOptions{Partitions: 1})
	s.sends(order{})
	proxy.On("EVALSHA", 2).Do(faultproxy.CloseAfter)
	r := s.run("sendmany", "orders", file(t, "a.ndjson", jsonLines(2500)))
	r.want(t, 1, "sent 1500, failed 1000 (1000 of these may have been sent all the same)\n", "lines 1001-2000: may have been sent: ")
	if strings.Count(r.err, "\n") != 1 {
		t.Errorf("stderr %q", r.err)
	}
}

func TestSendManyServerFull(t *testing.T) {
	server := redistest.Start(t)
	s := shopAt(t, server.URL(), server.Client(t), &runnel.StreamOptions{Partitions: 1})
	s.sends(order{})
	s.configure("maxmemory", "1")
	r := s.run("sendmany", "orders", file(t, "a.ndjson", jsonLines(1500)))
	r.want(t, 1, "sent 0, failed 1500\n", "not sent: ")
	if n := strings.Count(r.err, "\n"); n > 4 {
		t.Errorf("a flood of %d lines: %s", n, r.err)
	}
}

func fakeBulk(stdin io.Reader, stderr io.Writer, send func(context.Context, []appview.JSONRecord) []appview.JSONSent) *bulk {
	p := newProgram(nil, stdin, io.Discard, stderr)
	return &bulk{
		session: &session{program: p, out: output{w: io.Discard}}, report: newReport(stderr, false),
		to: &target{name: "orders", send: send},
	}
}

// endless repeats a line.
type endless struct {
	line []byte
	left int
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := copy(b, e.line[e.at:])
	if e.at += n; e.at == len(e.line) {
		e.at = 0
		e.left--
	}
	return n, nil
}

func TestSendManyUsesConstantMemory(t *testing.T) {
	line := []byte(`{"customer":"` + strings.Repeat("x", 10_000) + "\"}\n")
	const n = 40_000 // 400 MB
	var peak uint64
	sent, look := 0, 0
	b := fakeBulk(&endless{line: line, left: n}, io.Discard, func(_ context.Context, rs []appview.JSONRecord) []appview.JSONSent {
		if sent += len(rs); sent >= look { // live memory only: when garbage is collected depends on the machine
			look = sent + n/20
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}
		return make([]appview.JSONSent, len(rs))
	})
	if err := b.run(t.Context(), []string{"-"}); err != nil || b.Sent != n {
		t.Fatalf("sent %d: %v", b.Sent, err)
	}
	if peak == 0 || peak > 64<<20 {
		t.Errorf("heap in use %d MB", peak>>20)
	}
}

func TestSendManyStopsWhenTheServerIsGone(t *testing.T) {
	server := redistest.Start(t)
	s := shopAt(t, server.URL(), server.Client(t), nil)
	s.sends(order{})
	server.Kill()
	client := s.client()
	b := fakeBulk(strings.NewReader(jsonLines(5000)), io.Discard, func(_ context.Context, rs []appview.JSONRecord) []appview.JSONSent {
		out := make([]appview.JSONSent, len(rs))
		for i := range out {
			out[i].Err = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		return out
	})
	b.client = client
	err := b.run(t.Context(), []string{"-"})
	if err == nil || !strings.Contains(err.Error(), "stopped: nothing after line 1000 was sent: no Redis at") || b.Failed != 1000 {
		t.Errorf("%v; %+v", err, b.counts)
	}
}

// A batch under way is completed when ctx ends, so that its outcome is known.
func TestSendManyInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stdin, feed := io.Pipe()
	go io.WriteString(feed, jsonLines(3)) // then the command waits
	b := fakeBulk(stdin, io.Discard, func(ctx context.Context, rs []appview.JSONRecord) []appview.JSONSent {
		cancel()
		if ctx.Err() != nil {
			t.Error("the send was interrupted")
		}
		return make([]appview.JSONSent, len(rs))
	})
	err := b.run(ctx, []string{"-"})
	feed.Close()
	if err == nil || !strings.HasPrefix(err.Error(), "interrupted: nothing after line ") || b.Sent == 0 {
		t.Errorf("%v; %+v", err, b.counts)
	}
}

// Lines are sent as they arrive.
func TestSendManyDoesNotWaitForMore(t *testing.T) {
	stdin, feed := io.Pipe()
	sent := make(chan int, 10)
	b := fakeBulk(stdin, io.Discard, func(_ context.Context, rs []appview.JSONRecord) []appview.JSONSent {
		sent <- len(rs)
		return make([]appview.JSONSent, len(rs))
	})
	done := make(chan error, 1)
	go func() { done <- b.run(t.Context(), []string{"-"}) }()
	for range 3 {
		io.WriteString(feed, "{\"customer\":\"ada\"}\n")
		if n := receive(t, sent, "batch"); n != 1 {
			t.Errorf("batch of %d", n)
		}
	}
	feed.Close()
	if err := receive(t, done, "end"); err != nil {
		t.Error(err)
	}
}

func TestReadErrorsAreReported(t *testing.T) {
	broken := io.MultiReader(strings.NewReader(jsonLines(2)), errReader{})
	b := fakeBulk(broken, io.Discard, func(_ context.Context, rs []appview.JSONRecord) []appview.JSONSent {
		return make([]appview.JSONSent, len(rs))
	})
	if err := b.run(t.Context(), []string{"-"}); err == nil || !strings.Contains(err.Error(), "behind line 2: disk on fire") || b.Sent != 2 {
		t.Errorf("%v; %+v", err, b.counts)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }
