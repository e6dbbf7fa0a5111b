package embedded

import (
	"io"
	"net"
	"sync"
)

// pipe returns the two ends of a connection in memory. As over TCP a client may
// write a pipeline of any length before it reads the first reply: over net.Pipe
// alone, where each write waits for its reader, the server would wait to write that
// reply while the client waits to write on.
func pipe() (client, server net.Conn) {
	client, conn := net.Pipe()
	p := &patient{Conn: conn}
	p.more.L = &p.mu
	go p.fill()
	return client, p
}

// A patient connection takes what is written to it at once, and keeps it until it
// is read. It knows no read deadlines; miniredis sets none.
type patient struct {
	net.Conn

	mu     sync.Mutex
	more   sync.Cond
	unread []byte
	ended  bool
}

func (p *patient) fill() {
	part := make([]byte, 4<<10)
	for {
		n, err := p.Conn.Read(part)
		p.mu.Lock()
		if !p.ended {
			p.unread, p.ended = append(p.unread, part[:n]...), err != nil
		}
		p.more.Signal()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Read takes what there is, and waits for the first byte.
func (p *patient) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.unread) == 0 {
		if p.ended {
			return 0, io.EOF
		}
		p.more.Wait()
	}
	n := copy(b, p.unread)
	p.unread = p.unread[n:]
	return n, nil
}

// Close ends the connection: what was not read by now never is, so that a client
// that was killed does nothing more.
func (p *patient) Close() error {
	p.mu.Lock()
	p.unread, p.ended = nil, true
	p.more.Signal()
	p.mu.Unlock()
	return p.Conn.Close()
}
