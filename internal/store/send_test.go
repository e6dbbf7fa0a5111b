package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// records returns n records whose field n counts from first.
func records(first, n int) [][]string {
	out := make([][]string, n)
	for i := range out {
		out[i] = []string{"n", fmt.Sprint(first + i), "data", "x"}
	}
	return out
}

// contents returns the field n of a partition's entries.
func (e *env) contents(log string) []string {
	e.t.Helper()
	entries := try(e.raw.XRange(e.ctx(), log, "-", "+").Result()).must(e.t)
	var out []string
	for _, entry := range entries {
		out = append(out, fmt.Sprint(entry.Values["n"]))
	}
	return out
}

func TestAppend(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.must(e.raw.Set(e.ctx(), "bad", "x", 0).Err())
		as := []Append{
			{Log: "a", Records: records(0, 3)},
			{Log: "bad", Records: records(0, 2)},
			{Log: "b", Records: records(0, 1)},
			{Log: "none"},
			{Log: "long", Records: records(0, 2*recordsPerCall+1)},
		}
		out := e.Append(e.ctx(), as)
		for i, a := range as {
			if a.Log == "bad" {
				if !errors.Is(out[i].Err, redisconn.ErrWrongType) || out[i].Unknown || len(out[i].IDs) != 0 {
					t.Errorf("bad: got %+v", out[i])
				}
				continue
			}
			if out[i].Err != nil || len(out[i].IDs) != len(a.Records) {
				t.Fatalf("%s: %d of %d are in, %v", a.Log, len(out[i].IDs), len(a.Records), out[i].Err)
			}
			entries := e.raw.XRange(e.ctx(), a.Log, "-", "+").Val()
			equal(t, a.Log+" IDs", ids(entries), out[i].IDs)
			var want []string
			for _, r := range a.Records {
				want = append(want, r[1])
			}
			equal(t, a.Log, e.contents(a.Log), want)
		}
		equal(t, "keys", e.raw.Exists(e.ctx(), "none").Val(), 0)
	})
}

// One script call serves partitions of all sorts: each gets its own records.
func TestOneCallForAllSorts(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		_, err := e.EnsureMeta(e.ctx(), "orders", Meta{
			Partitions: 8, MaxLen: 3, Overflow: OverflowReject, DedupWindow: time.Hour.Milliseconds(), Processors: []string{"printer"},
		})
		e.must(err)
		e.must(e.raw.Set(e.ctx(), "bad", "x", 0).Err())
		wide := append(make([]string, 0, fieldsPerCall+4), "n", "0")
		for len(wide) < fieldsPerCall+2 {
			wide = append(wide, fmt.Sprint(len(wide)), "")
		}
		as := []Append{
			{Log: "one", Records: [][]string{{"n", "0"}, {"n", "1"}}},
			{Log: "full", Records: records(0, 3)},
			{Log: "shapes", Records: [][]string{{"n", "0"}, {"n", "1", "data", ""}, {"data", "x", "n", "2"}}},
			{Log: "bad", Records: records(0, 1)},
			{Log: "wide", Records: [][]string{wide, {"n", "1"}}},
			{Log: "ids", Records: [][]string{{"n", "0"}, {"n", "1"}, {"n", "2"}}, IDs: []string{"a", "", "a"}},
			{Log: "last", Records: [][]string{{"n", "0", "data", "y"}}},
		}
		for i := range as {
			as[i].Stream, as[i].Partition = "orders", i
		}
		e.must(e.Append(e.ctx(), []Append{{Stream: "orders", Partition: 1, Log: "full", Records: records(7, 1)}})[0].Err)
		out := e.Append(e.ctx(), as)
		want := map[string]string{
			"one": "[0 1]", "full": "[7]", "shapes": "[0 1 2]", "wide": "[0 1]", "ids": "[0 1]", "last": "[0]",
		}
		for i, a := range as {
			var full *FullError
			switch err := out[i].Err; {
			case a.Log == "bad" && !errors.Is(err, redisconn.ErrWrongType), a.Log == "full" && !errors.As(err, &full):
				t.Errorf("%s: got %v", a.Log, err)
			case a.Log == "bad":
				continue
			case a.Log != "full":
				e.must(err)
				equal(t, a.Log+" IDs", len(out[i].IDs), len(a.Records))
			}
			equal(t, a.Log, fmt.Sprint(e.contents(a.Log)), want[a.Log])
		}
		equal(t, "duplicates", out[5].Duplicate, []bool{false, false, true})
		equal(t, "ID of the duplicate", out[5].IDs[2], out[5].IDs[0])
	})
}

func TestAppendLargeRecords(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		big := strings.Repeat("x", 3<<20)
		wide := make([]string, 2*8000)
		for i := range wide {
			wide[i] = fmt.Sprint(i)
		}
		wide[0], wide[1] = "n", "2"
		as := []Append{{Log: "a", Records: [][]string{{"n", "0", "d", big}, {"n", "1", "d", big}, wide, {"n", "3"}, {"n", "4"}}}}
		out := e.Append(e.ctx(), as)
		e.must(out[0].Err)
		equal(t, "order", e.contents("a"), []string{"0", "1", "2", "3", "4"})
		equal(t, "last value", e.raw.XRange(e.ctx(), "a", out[0].IDs[2], out[0].IDs[2]).Val()[0].Values["15998"], "15999")
	})
}

func TestAppendStopsAtTheFirstFailure(t *testing.T) {
	e := realEnv(t, "--maxmemory", "16mb", "--maxmemory-policy", "noeviction")
	value := strings.Repeat("x", 1<<20)
	as := []Append{{Log: "a"}, {Log: "b"}}
	for i := range 40 {
		for j := range as {
			as[j].Records = append(as[j].Records, []string{"n", fmt.Sprint(i), "data", value})
		}
	}
	out := e.Append(e.ctx(), as)
	for i, a := range out {
		if a.Err == nil || a.Unknown || !strings.Contains(a.Err.Error(), "OOM") {
			t.Fatalf("%s: got %v, unknown %v", as[i].Log, a.Err, a.Unknown)
		}
		want := make([]string, len(a.IDs))
		for k := range want {
			want[k] = fmt.Sprint(k)
		}
		equal(t, "what is in", e.contents(as[i].Log), want)
	}
	if len(out[0].IDs) == 0 || len(out[0].IDs) == 40 {
		t.Errorf("%d records are in: memory ran out at no point in between", len(out[0].IDs))
	}
}

// deaf returns a client that gets no replies while *deaf is true.
func (e *env) deaf() (deaf *bool, c *Client) {
	e.t.Helper()
	o := &redis.Options{Addr: e.addr}
	dial := redis.NewDialer(o)
	deaf = new(bool)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		return &switchConn{Conn: nc, deaf: deaf}, err
	}
	shared := redis.NewClient(o)
	e.t.Cleanup(func() { shared.Close() })
	c = try(Open(redisconn.Options{Redis: shared, Keys: keys.Keys{App: "example", Layout: keys.Standalone}})).must(e.t)
	return deaf, c
}

func TestAppendWithALostReplyIsUnknown(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		deaf, c := e.deaf()
		defer c.Close()
		e.must(c.Append(e.ctx(), []Append{{Log: "a", Records: records(0, 1)}})[0].Err)
		e.must(c.Append(e.ctx(), []Append{{Log: "b", Records: records(-1, 2)}})[0].Err)
		*deaf = true
		out := c.Append(e.ctx(), []Append{{Log: "a", Records: records(1, 1)}, {Log: "b", Records: records(1, 2)}})
		*deaf = false
		for i := range out {
			if !out[i].Unknown || !errors.Is(out[i].Err, redisconn.ErrUnknownOutcome) || len(out[i].IDs) != 0 {
				t.Errorf("%d: got %+v", i, out[i])
			}
		}
		equal(t, "executed before its reply was lost", e.contents("a"), []string{"0", "1"})
		// The server may have noticed the broken connection before it came to b.
		if got := fmt.Sprint(e.contents("b")); got != "[-1 0]" && got != "[-1 0 1 2]" {
			t.Errorf("appended at most once: got %s", got)
		}
	})
}

// breakingServer closes each connection after its first reply from replies, which are by command.
func breakingServer(t *testing.T, replies map[string]string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					command, err := request(r)
					if err != nil {
						return
					}
					reply, last := replies[command]
					if !last {
						reply = "-ERR unknown command\r\n"
					}
					if _, err := c.Write([]byte(reply)); err != nil || last {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// request reads one request and returns its command.
func request(r *bufio.Reader) (command string, err error) {
	n, err := header(r)
	for i := 0; i < n && err == nil; i++ {
		var size int
		if size, err = header(r); err != nil {
			break
		}
		text := make([]byte, size+2)
		for at := 0; at < len(text) && err == nil; at++ {
			text[at], err = r.ReadByte()
		}
		if i == 0 {
			command = strings.ToUpper(string(text[:size]))
		}
	}
	return command, err
}

// header reads "*3" or "$5".
func header(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// When a connection breaks, go-redis also fails commands that were answered, whose records are in.
func TestAnAppendAnsweredBeforeTheConnectionBrokeIsIn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		records int
		replies map[string]string
		ids     string
	}{
		{"one record", 1, map[string]string{"EVALSHA": "*1\r\n$3\r\n1-1\r\n"}, "[1-1]"},
		{"two records", 2, map[string]string{"EVALSHA": "*1\r\n$7\r\n1-1 1-2\r\n"}, "[1-1 1-2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Open(redisconn.Options{URL: "redis://" + breakingServer(t, tt.replies), Keys: keys.Keys{App: "example", Layout: keys.Standalone}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			// More records than one call takes: the second partition gets a call of its own.
			out := c.Append(t.Context(), []Append{{Log: "a", Records: records(0, tt.records)}, {Log: "b", Records: records(0, recordsPerCall)}})
			if fmt.Sprint(out[0].IDs) != tt.ids || out[0].Err != nil || out[0].Unknown {
				t.Errorf("answered: got %+v", out[0])
			}
			if len(out[1].IDs) > 0 || !out[1].Unknown || !errors.Is(out[1].Err, redisconn.ErrUnknownOutcome) {
				t.Errorf("not answered: got %+v", out[1])
			}
		})
	}
}
