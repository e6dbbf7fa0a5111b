package embedded

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// peers numbers the connections that asked for their ID.
type peers struct {
	peerMu sync.Mutex
	lastID int64
	ids    map[*server.Peer]int64
	byID   map[int64]*server.Peer
}

// answerClient answers CLIENT ID and CLIENT KILL ID, which miniredis lacks, and
// keeps what a killed connection had sent from being executed. WAIT says that there are
// as many replicas as it is asked about: nothing can fail over here, so that an app that
// wants replicas in production runs without.
func (s *Server) answerClient() {
	s.ids, s.byID = map[*server.Peer]int64{}, map[int64]*server.Peer{}
	s.mini.Server().SetPreHook(func(p *server.Peer, cmd string, args ...string) bool {
		if p.Closed() {
			return true
		}
		if cmd == "WAIT" && len(args) == 2 {
			n, _ := strconv.Atoi(args[0])
			p.WriteInt(n)
			return true
		}
		if cmd == "XLEN" && p.ClientName != oneReply {
			s.answerOnce(p, cmd, args)
			return true
		}
		if cmd != "CLIENT" || len(args) == 0 {
			return false
		}
		switch {
		case len(args) == 1 && strings.EqualFold(args[0], "ID"):
			p.WriteInt(int(s.id(p)))
			return true
		case len(args) == 3 && strings.EqualFold(args[0], "KILL") && strings.EqualFold(args[1], "ID"):
			id, err := strconv.ParseInt(args[2], 10, 64)
			if err != nil || id <= 0 {
				p.WriteError("ERR client-id should be greater than 0")
				return true
			}
			p.WriteInt(s.kill(id))
			return true
		}
		return false
	})
}

// oneReply is the name of a peer of which only the first reply counts.
const oneReply = "embedded: one reply"

// answerOnce answers with the first line of what miniredis writes. To XLEN of a key of
// another type it writes an error and a zero, and the zero would be taken for the reply
// of the next command. (In a transaction it still does.)
func (s *Server) answerOnce(p *server.Peer, cmd string, args []string) {
	var written bytes.Buffer
	w := bufio.NewWriter(&written)
	once := server.NewPeer(w)
	once.Ctx, once.ClientName = p.Ctx, oneReply // of the same database, and in the same script
	s.mini.Server().Dispatch(once, append([]string{cmd}, args...))
	w.Flush()
	line, _, _ := strings.Cut(written.String(), "\n")
	p.WriteRaw(line + "\n")
}

func (s *Server) id(p *server.Peer) int64 {
	s.peerMu.Lock()
	defer s.peerMu.Unlock()
	if id, ok := s.ids[p]; ok {
		return id
	}
	s.lastID++
	id := s.lastID
	s.ids[p], s.byID[id] = id, p
	p.OnDisconnect(func() {
		s.peerMu.Lock()
		defer s.peerMu.Unlock()
		delete(s.ids, p)
		delete(s.byID, id)
	})
	return id
}

func (s *Server) kill(id int64) int {
	s.peerMu.Lock()
	p := s.byID[id]
	s.peerMu.Unlock()
	if p == nil {
		return 0
	}
	p.Close()
	s.wake()
	return 1
}

// wake makes every blocked command look again whether its peer is closed: any
// command does, so it runs one whose reply goes nowhere.
func (s *Server) wake() {
	p := server.NewPeer(bufio.NewWriter(io.Discard))
	s.mini.Server().Dispatch(p, []string{"EXISTS", ""})
}
