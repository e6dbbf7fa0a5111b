package redistest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// queryBuffer is how much Redis reads from a connection, and executes, before it serves the next one.
const queryBuffer = 16 << 10

// meterTries is how often Hold measures before it fails: another process may have taken the server's core meanwhile.
const meterTries = 8

// A Meter measures, by the server's SLOWLOG, how long commands keep a server from its other
// clients. As a proxy in front of the server it sees which commands travel together. The log also
// has an entry for each command inside a script, which costs scripts somewhat under a microsecond
// each. The server's durations include the time in which other processes had its core: if permitted
// the server goes before them, and the rest is scaled by its share of the core.
type Meter struct {
	t        testing.TB
	process  *Server
	server   *redis.Client
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	asked map[string][]request // by the address that the server knows the connection by
}

// A request is one that passed, with the number of the read that brought its end to the server:
// requests of one read are executed in a row.
type request struct {
	name string
	read int
}

// A Cost is what a scene cost the server: time of the server, not of the client.
type Cost struct {
	Longest time.Duration // of one command or script
	Command string        // which that was, as SLOWLOG shows it
	// Row is an upper bound for how long another client had to wait: the longest run of commands during which no
	// connection had more than one read.
	Row   time.Duration
	InRow int // the commands of that run
}

// String is the cost in one line.
func (c Cost) String() string {
	return fmt.Sprintf("longest %v, %d in a row %v (%s)", c.Longest, c.InRow, c.Row, c.Command)
}

// StartMeter starts a meter in front of s. It ends with t, and its connections with it.
func StartMeter(t testing.TB, s *Server) *Meter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start meter: %v", err)
	}
	patient := s.options()
	patient.ReadTimeout = time.Minute // the log may be long, and the machine busy
	client := redis.NewClient(patient)
	t.Cleanup(func() { _ = client.Close() })
	m := &Meter{t: t, process: s, server: client, listener: l, target: s.Addr(), conns: map[net.Conn]struct{}{}, asked: map[string][]request{}}
	s.putFirst()
	m.running.Go(m.accept)
	t.Cleanup(m.close)
	return m
}

// Addr is the address that the clients to be measured connect to, host:port.
func (m *Meter) Addr() string { return m.listener.Addr().String() }

// Hold fails the test unless scene, run a few times at most, once stays within both bounds: longest for each command,
// row for those that are executed in a row. It calls prepare before each run, unmeasured, and returns the best.
func (m *Meter) Hold(longest, row time.Duration, prepare, scene func()) Cost {
	m.t.Helper()
	var best Cost
	for try := range meterTries {
		prepare()
		got := m.Measure(scene)
		if try == 0 || got.Longest < best.Longest {
			best.Longest, best.Command = got.Longest, got.Command
		}
		if try == 0 || got.Row < best.Row {
			best.Row, best.InRow = got.Row, got.InRow
		}
		if best.Longest <= longest && best.Row <= row {
			return best
		}
	}
	m.t.Errorf("the server was kept by one command for %v, want %v at most; by %d in a row for %v, want %v; the longest was %s",
		best.Longest, longest, best.InRow, best.Row, row, best.Command)
	return best
}

// Measure runs a scene, whose requests must have ended when it returns, and returns its cost. Other
// work of the server at that time counts too.
func (m *Meter) Measure(scene func()) Cost {
	m.t.Helper()
	ctx := context.Background()
	do := func(args ...any) {
		m.t.Helper()
		if err := m.server.Do(ctx, args...).Err(); err != nil {
			m.t.Fatalf("measure: %v", err)
		}
	}
	m.mu.Lock()
	m.asked = map[string][]request{}
	m.mu.Unlock()
	do("SLOWLOG", "RESET")
	do("CONFIG", "SET", "slowlog-max-len", "10000000")
	do("CONFIG", "SET", "slowlog-log-slower-than", "0")
	ran, waited := m.process.scheduled()
	scene()
	ranThen, waitedThen := m.process.scheduled()
	do("CONFIG", "SET", "slowlog-log-slower-than", "-1")
	entries := SlowLog(m.t, m.server)
	do("SLOWLOG", "RESET")
	return m.cost(entries).scaled(ranThen-ran, waitedThen-waited)
}

// scaled is the cost to a server that ran for so long while it waited for a core for so long.
func (c Cost) scaled(ran, waited time.Duration) Cost {
	if ran <= 0 || waited <= 0 {
		return c
	}
	share := float64(ran) / float64(ran+waited)
	c.Longest, c.Row = time.Duration(share*float64(c.Longest)), time.Duration(share*float64(c.Row))
	return c
}

func (m *Meter) cost(entries []redis.SlowLog) (c Cost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, latest := map[string]int{}, map[string]int{} // by connection: its next request, its latest read
	row, inRow := time.Duration(0), 0
	for _, e := range entries {
		if strings.HasPrefix(e.ClientAddr, "?") || len(e.Args) > 2 && strings.HasPrefix(e.Args[2], "slowlog-") {
			continue // inside a script, or our own
		}
		if e.Duration > c.Longest {
			c.Longest, c.Command = e.Duration, strings.Join(e.Args[:min(len(e.Args), 8)], " ")
		}
		asked, read := m.asked[e.ClientAddr], -1
		for n := next[e.ClientAddr]; n < len(asked); n++ { // what was refused has no entry
			if len(e.Args) == 0 || asked[n].name == strings.ToUpper(e.Args[0]) {
				next[e.ClientAddr], read = n+1, asked[n].read
				break
			}
		}
		if before, found := latest[e.ClientAddr]; found && (read < 0 || read != before) {
			clear(latest)
			row, inRow = 0, 0
		}
		latest[e.ClientAddr] = read
		if row, inRow = row+e.Duration, inRow+1; row >= c.Row {
			c.Row, c.InRow = row, inRow
		}
	}
	return c
}

// SlowLog is the server's log of slow commands, the oldest first. A command that was blocked has no arguments there,
// which the client of its own does not understand.
func SlowLog(t testing.TB, c *redis.Client) (entries []redis.SlowLog) {
	t.Helper()
	rows, err := c.WithTimeout(Patience).Do(context.Background(), "SLOWLOG", "GET", -1).Slice() // it may have a hundred thousand rows
	if err != nil {
		t.Fatalf("read the slow log: %v", err)
	}
	for _, row := range rows {
		fields := row.([]any)
		e := redis.SlowLog{ID: fields[0].(int64), Duration: time.Duration(fields[2].(int64)) * time.Microsecond, ClientAddr: fields[4].(string)}
		for _, arg := range fields[3].([]any) {
			e.Args = append(e.Args, arg.(string))
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b redis.SlowLog) int { return cmp.Compare(a.ID, b.ID) })
	return entries
}

func (m *Meter) accept() {
	for {
		client, err := m.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", m.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		m.mu.Lock()
		m.conns[client], m.conns[server] = struct{}{}, struct{}{}
		m.mu.Unlock()
		p := &passage{meter: m, addr: server.LocalAddr().String()}
		m.running.Go(func() { p.carry(server, client, p.request) })
		m.running.Go(func() { p.carry(client, server, p.reply) })
	}
}

func (m *Meter) close() {
	_ = m.listener.Close()
	m.mu.Lock()
	for c := range m.conns {
		_ = c.Close()
	}
	m.mu.Unlock()
	m.running.Wait()
}

// A passage is one connection of a client, through the meter.
type passage struct {
	meter *Meter
	addr  string

	mu       sync.Mutex
	parser   requestParser
	names    []string // of requests whose end has not passed
	answered bool     // since the last request
	reads    int      // that the server has begun
	room     int      // left in the present one
}

// carry copies what one side says to the other one, after seen was told of it.
func (p *passage) carry(to, from net.Conn, seen func([]byte)) {
	defer to.Close()
	buffer := make([]byte, queryBuffer)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			seen(buffer[:n])
			if _, err := to.Write(buffer[:n]); err != nil {
				_, _ = io.Copy(io.Discard, from)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *passage) reply([]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = true
}

func (p *passage) request(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered {
		p.answered, p.room = false, 0
	}
	for len(b) > 0 {
		if p.room == 0 {
			p.reads, p.room = p.reads+1, queryBuffer
		}
		n := min(p.room, len(b))
		p.parser.feed(b[:n], func(name string) { p.names = append(p.names, name) })
		b, p.room = b[n:], p.room-n
		whole := len(p.names)
		if p.parser.items > 0 {
			whole-- // the last one goes on
		}
		if whole <= 0 {
			continue
		}
		p.meter.mu.Lock()
		for _, name := range p.names[:whole] {
			p.meter.asked[p.addr] = append(p.meter.asked[p.addr], request{name, p.reads})
		}
		p.meter.mu.Unlock()
		p.names = slices.Delete(p.names, 0, whole)
	}
}
