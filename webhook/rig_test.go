package webhook

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// loopback is what senders of tests may reach.
var loopback = prefixes("127.0.0.0/8", "::1/128")

// discard is for servers that complain about what a test does.
var discard = log.New(io.Discard, "", 0)

// long is a timeout that no test waits for.
const long = time.Minute

func senderOf(t *testing.T, o Options) *sender {
	t.Helper()
	o, err := o.resolved()
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(&o)
	if transport, ok := s.transport.(*http.Transport); ok {
		t.Cleanup(transport.CloseIdleConnections)
	}
	return s
}

// confidential is what must not be in an error.
var confidential = []string{"T0K3N", "d41d8cd98f00", "ZDQxZDhjZDk4ZjAw", "U2VjcmV0U2VjcmV0", "v1,", "Authorization", "msg_mail_7"}

func deliveryTo(t *testing.T, callback string) *attempt {
	t.Helper()
	return &attempt{
		callback: callback + "/hooks/T0K3N", body: []byte(oneEvent), id: "msg_mail_7", attempt: 2, epoch: 9,
		uuid: "d41d8cd98f00", keys: mustParse(t, "whsec_U2VjcmV0U2VjcmV0U2VjcmV0U2VjcmV0"),
	}
}

// wants checks an answer, and that its error shows nothing confidential.
func wants(t *testing.T, a answer, status int, text string) {
	t.Helper()
	if a.status != status || !strings.Contains(a.err, text) || (status/100 == 2) != (a.err == "") {
		t.Errorf("got %+v, want status %d, %q", a, status, text)
	}
	for _, part := range confidential {
		if strings.Contains(a.err, part) {
			t.Errorf("the error shows %s: %s", part, a.err)
		}
	}
}

// serve starts a receiver and returns its URL.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// serveRaw starts a receiver that handles connections as it likes, after it has read a request.
func serveRaw(t *testing.T, handle func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if readRequest(c) {
					handle(c)
				}
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return "http://" + l.Addr().String()
}

// readRequest reads a request of a delivery.
func readRequest(c net.Conn) bool {
	one, head := make([]byte, 1), ""
	for !strings.HasSuffix(head, "\r\n\r\n") {
		if _, err := io.ReadFull(c, one); err != nil {
			return false
		}
		head += string(one)
	}
	_, err := io.CopyN(io.Discard, c, int64(len(oneEvent)))
	return err == nil
}

// drip writes a text again and again until the other side has gone.
func drip(c net.Conn, text string) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
