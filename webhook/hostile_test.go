package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Of receivers that never come to an end: the exchange does. In fake time, over pipes.
func TestAnExchangeEndsAfterItsTimeout(t *testing.T) {
	hang := func(c net.Conn) { io.Copy(io.Discard, c) }
	for name, tt := range map[string]struct {
		head   string
		rest   func(c net.Conn)
		status int
		err    string
	}{
		"hangs":                {"", hang, 0, "no answer within 20s"},
		"status byte by byte":  {"", func(c net.Conn) { drip(c, "H") }, 0, "no answer within 20s"},
		"headers byte by byte": {"HTTP/1.1 200 OK\r\n", func(c net.Conn) { drip(c, "x") }, 0, "no answer within 20s"},
		"headers one by one":   {"HTTP/1.1 200 OK\r\n", func(c net.Conn) { drip(c, "A: b\r\n") }, 0, "no answer within 20s"},
		"a hint of headers":    {"HTTP/1.1 103 Early Hints\r\n\r\n", hang, 0, "no answer within 20s"},
		"a slow success":       {"HTTP/1.1 200 OK\r\n\r\nslow", func(c net.Conn) { drip(c, ".") }, 200, ""},
		"a slow failure":       {"HTTP/1.1 500 X\r\n\r\nslow", func(c net.Conn) { drip(c, ".") }, 500, "answered 500: slow...."},
		"a slow end":           {"HTTP/1.1 410 X\r\n\r\n", hang, 410, "answered 410"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := senderOf(t, Options{})
				var receiving sync.WaitGroup
				s.transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					receiving.Go(func() {
						defer server.Close()
						if readRequest(server) {
							io.WriteString(server, tt.head)
							tt.rest(server)
						}
					})
					return client, nil
				}
				a := s.post(t.Context(), deliveryTo(t, "http://hooks.example.com"))
				wants(t, a, tt.status, tt.err)
				if a.took != 20*time.Second {
					t.Errorf("it took %v", a.took)
				}
				receiving.Wait() // it ends with the connection
			})
		})
	}
}

// Of receivers that answer too much, or something else than HTTP: nothing is waited for.
func TestAnswersThatAreNone(t *testing.T) {
	for name, tt := range map[string]struct {
		handle func(c net.Conn)
		want   answer
	}{
		"a megabyte of headers": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20))
			io.Copy(io.Discard, c)
		}, answer{err: "no valid answer"}},
		"headers without an end": {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\n"); pour(c, "A: b\r\n") }, answer{err: "no valid answer"}},
		"hints without an end":   {func(c net.Conn) { pour(c, "HTTP/1.1 103 Early Hints\r\n\r\n") }, answer{err: ": "}},
		"closed":                 {func(net.Conn) {}, answer{err: "no valid answer"}},
		"closed within headers":  {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nX: T0K3N") }, answer{err: "no valid answer"}},
		"not HTTP":               {func(c net.Conn) { io.WriteString(c, "T0K3N d41d8cd98f00 U2VjcmV0U2VjcmV0\r\n\r\n") }, answer{err: "no valid answer"}},
		"an endless body":        {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); pour(c, strings.Repeat("x", 1<<16)) }, answer{status: 200}},
		"an endless failure":     {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 500 X\r\n\r\n"); pour(c, strings.Repeat("x", 1<<16)) }, answer{status: 500, err: "answered 500: " + strings.Repeat("x", 200)}},
		"another protocol": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			io.Copy(io.Discard, c)
		}, answer{err: ": "}},
	} {
		t.Run(name, func(t *testing.T) {
			a := senderOf(t, Options{AllowAddresses: loopback, Timeout: long}).post(t.Context(), deliveryTo(t, serveRaw(t, tt.handle)))
			if a.status == 101 { // what net/http makes of it depends on its version
				a.status = 0
			}
			wants(t, a, tt.want.status, tt.want.err)
			if _, shown, _ := strings.Cut(a.err, "answered 500: "); len(shown) > 200 {
				t.Errorf("%d characters are shown", len(shown))
			}
		})
	}
}

// pour writes a text again and again, as fast as it is read.
func pour(c net.Conn, text string) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

func TestAResetIsAFailureUnlessTheStatusCame(t *testing.T) {
	for head, want := range map[string]answer{
		"":                       {},
		"HTTP/1.1 200 OK\r\nX: ": {},
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab": {status: 200},
	} {
		reset := make(chan struct{})
		url := serveRaw(t, func(c net.Conn) {
			io.WriteString(c, head)
			if want.status != 0 {
				<-reset // not before the head has been read
			}
			c.(*net.TCPConn).SetLinger(0)
		})
		s := senderOf(t, Options{AllowAddresses: loopback, Timeout: long})
		transport := s.transport
		s.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			close(reset)
			return resp, err
		})
		wants(t, s.post(t.Context(), deliveryTo(t, url)), want.status, "")
	}
}

func TestABatchIsSentOnceInAnExchange(t *testing.T) {
	var requests atomic.Int32
	s := senderOf(t, Options{AllowAddresses: loopback, Timeout: long})
	url := serveRaw(t, func(c net.Conn) {
		for requests.Add(1) == 1 {
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			readRequest(c)
		}
	})
	wants(t, s.post(t.Context(), deliveryTo(t, url)), 204, "")
	// This one comes on the same connection, which then closes: net/http would repeat a GET.
	wants(t, s.post(t.Context(), deliveryTo(t, url)), 0, "")
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestNothingLeadsToTheLoopback(t *testing.T) {
	reached := make(chan string, 100)
	inside := serve(t, func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host })
	_, port, _ := strings.Cut(strings.TrimPrefix(inside, "http://"), ":")
	s := senderOf(t, Options{Timeout: long})
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]", "127.8.8.8"} {
		wants(t, s.post(t.Context(), deliveryTo(t, "http://"+host+":"+port)), 0, "prohibited IP address: ")
	}
	// Not even resolvers that read these as 127.0.0.1 do harm. Nobody is asked.
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }}
	s.transport = newTransport(nil, &net.Dialer{Control: guard(nil).Safe, Resolver: resolver})
	for _, host := range []string{"2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1."} {
		wants(t, s.post(t.Context(), deliveryTo(t, "http://"+host+":"+port)), 0, "")
	}
	t.Setenv("HTTP_PROXY", inside)
	t.Setenv("http_proxy", inside)
	t.Setenv("ALL_PROXY", inside)
	wants(t, s.post(t.Context(), deliveryTo(t, "http://hooks.example.com")), 0, "the name could not be looked up")
	redirect := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside, http.StatusTemporaryRedirect)
	})
	wants(t, senderOf(t, Options{AllowAddresses: loopback, Timeout: long}).post(t.Context(), deliveryTo(t, redirect)), 307, "answered 307")
	if len(reached) > 0 {
		t.Errorf("reached as %s", <-reached)
	}
}

// The name resolves to a public address for whoever asks first, and to the loopback for the dialer.
func TestANameThatIsReboundIsNotReached(t *testing.T) {
	reached := make(chan string, 100)
	inside := serve(t, func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host })
	var asked atomic.Int32
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerLookups(server, func() [4]byte {
			if asked.Add(1) == 1 {
				return [4]byte{8, 8, 8, 8}
			}
			return [4]byte{127, 0, 0, 1}
		})
		return client, nil
	}}
	first, err := resolver.LookupNetIP(t.Context(), "ip4", "rebound.example.")
	if err != nil || guard(nil).SafeAddr(first[0]) != nil {
		t.Fatalf("resolves to %v: %v", first, err)
	}
	s := senderOf(t, Options{Timeout: long})
	s.transport = newTransport(nil, &net.Dialer{Control: guard(nil).Safe, Resolver: resolver})
	_, port, _ := strings.Cut(strings.TrimPrefix(inside, "http://"), ":")
	wants(t, s.post(t.Context(), deliveryTo(t, "http://rebound.example.:"+port)), 0, "prohibited IP address: 127.0.0.1 is not")
	if len(reached) > 0 {
		t.Errorf("reached as %s", <-reached)
	}
}

// answerLookups is a name server for one connection: it answers questions for IPv4 addresses, and has no others.
func answerLookups(c net.Conn, address func() [4]byte) {
	defer c.Close()
	for {
		size := make([]byte, 2)
		if _, err := io.ReadFull(c, size); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		end := 12 + bytes.IndexByte(query[12:], 0) + 5 // of the question: name, type, class
		reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
		if query[end-3] == 1 { // type A
			ip := address()
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ip[0], ip[1], ip[2], ip[3])
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = discard
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	trusting := func(name string) *tls.Config {
		return &tls.Config{RootCAs: roots, ServerName: name, NextProtos: []string{"h2"}}
	}
	for _, tt := range []struct {
		name   string
		config *tls.Config
		want   answer
	}{
		{"right", trusting(""), answer{status: 200}},
		{"another name", trusting("hooks.example.org"), answer{err: "127.0.0.1:" + port + ": TLS: failed to verify certificate: x509: certificate is valid for example.com"}},
		{"an authority that is unknown", nil, answer{err: "TLS: failed to verify certificate: x509: certificate signed by unknown authority"}},
		{"too old for us", &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11}, answer{err: "TLS: "}},
	} {
		a := senderOf(t, Options{AllowAddresses: loopback, Timeout: long, TLS: tt.config}).post(t.Context(), deliveryTo(t, srv.URL))
		if wants(t, a, tt.want.status, tt.want.err); t.Failed() {
			t.Fatal(tt.name)
		}
	}
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	a := senderOf(t, Options{AllowAddresses: loopback, Timeout: long}).post(t.Context(), deliveryTo(t, strings.Replace(plain, "http", "https", 1)))
	wants(t, a, 0, "TLS: first record does not look like a TLS handshake")
}

func TestReceiversMustSpeakTLS12(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	srv.Config.ErrorLog = discard
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	a := senderOf(t, Options{AllowAddresses: loopback, Timeout: long, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10}}).post(t.Context(), deliveryTo(t, srv.URL))
	wants(t, a, 0, "TLS: ")
}
