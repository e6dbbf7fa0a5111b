package security

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// encrypted starts a server that also listens with TLS. wants is "yes" or "no": whether clients
// need a certificate.
func encrypted(t *testing.T, a *authority, wants string) (server *redistest.Server, addr string) {
	t.Helper()
	port := freePort(t)
	cert, key := a.issue("server")
	server = redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.file, "--tls-auth-clients", wants)
	return server, "127.0.0.1:" + port
}

// shops numbers apps: apps of one name on one server would process each other's orders.
var shops atomic.Int64

func works(t *testing.T, o *runnel.Options) error {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	app := runnel.New(fmt.Sprint("shop", shops.Add(1)), o)
	defer app.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Key }, nil)
	done := 0
	orders.Process("printer", runnel.Each(func(context.Context, *runnel.Event, order) error {
		done++
		stop()
		return nil
	}), nil)
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- app.Run(ctx)
	}()
	sent := orders.Send(t.Context(), order{"a", 1})
	for sent != nil && ctx.Err() == nil { // on a busy machine one may find no server in time
		t.Logf("sent again: %v", sent)
		sent = orders.Send(t.Context(), order{"a", 1})
	}
	late := time.AfterFunc(2*time.Minute, func() {
		t.Errorf("the order was not processed: %v", sent)
		stop()
	})
	defer late.Stop()
	err := <-ended
	if err == nil && done == 0 {
		t.Errorf("sent: %v, processed none", sent)
	}
	return err
}

func TestTLS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	_, open := encrypted(t, a, "no")
	_, mutual := encrypted(t, a, "yes")
	cert, key := a.issue("client")
	otherCert, otherKey := stranger.issue("client")
	plain := redistest.Start(t)
	tests := []struct {
		name string
		o    runnel.Options
		want string // in the error, "" for none
	}{
		{"with its authority", runnel.Options{RedisURL: "rediss://" + open, RedisCA: a.file}, ""},
		{"unchecked by choice", runnel.Options{RedisURL: "rediss://" + open + "?skip_verify=true"}, ""},
		{"with the system's authorities", runnel.Options{RedisURL: "rediss://" + open}, "server certificate not accepted: x509: certificate signed by unknown authority; RUNNEL_REDIS_CA names"},
		{"with a wrong authority", runnel.Options{RedisURL: "rediss://" + open, RedisCA: stranger.file}, "server certificate not accepted: x509: "},
		{"under a wrong name", runnel.Options{RedisURL: "rediss://" + strings.Replace(open, "127.0.0.1", "localhost", 1), RedisCA: a.file}, "server certificate not accepted: x509: "},
		{"without TLS to a port with it", runnel.Options{RedisURL: "redis://" + open}, "it closed the connection at once; if it speaks TLS, the URL begins with rediss://"},
		{"with both certificates", runnel.Options{RedisURL: "rediss://" + mutual, RedisCA: a.file, RedisCert: cert, RedisKey: key}, ""},
		{"without our certificate", runnel.Options{RedisURL: "rediss://" + mutual, RedisCA: a.file}, "if a client certificate is required, RUNNEL_REDIS_CERT and RUNNEL_REDIS_KEY name its files"},
		{"with a stranger's certificate", runnel.Options{RedisURL: "rediss://" + mutual, RedisCA: a.file, RedisCert: otherCert, RedisKey: otherKey}, "the server refused the TLS handshake: "},
		{"with TLS to a port without it", runnel.Options{RedisURL: "rediss://" + plain.Addr(), RedisCA: a.file}, "without it the URL begins with redis://"},
		{"an authority for a plain URL", runnel.Options{RedisURL: plain.URL(), RedisCA: a.file}, "are for a URL that begins with rediss://"},
		{"half of a pair", runnel.Options{RedisURL: "rediss://" + mutual, RedisCert: cert}, "belong together"},
		{"no such file", runnel.Options{RedisURL: "rediss://" + open, RedisCA: "/nowhere"}, "RUNNEL_REDIS_CA): open /nowhere"},
		{"no certificate in it", runnel.Options{RedisURL: "rediss://" + open, RedisCA: key}, "has none in PEM"},
		{"another's key", runnel.Options{RedisURL: "rediss://" + mutual, RedisCert: cert, RedisKey: otherKey}, "RUNNEL_REDIS_KEY): tls: private key does not match"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := works(t, &tt.o)
			for err != nil && strings.Contains(err.Error(), "i/o timeout") { // a busy machine answers too late
				err = works(t, &tt.o)
			}
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// The environment and an own client do what the options do.
func TestTLSByEnvironmentAndByClient(t *testing.T) {
	a := newAuthority(t)
	server, addr := encrypted(t, a, "yes")
	certFile, keyFile := a.issue("client")
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	a.must(err)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	rdb := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}})
	defer rdb.Close()
	a.must(works(t, &runnel.Options{Redis: rdb}))

	t.Setenv("RUNNEL_REDIS_URL", "rediss://"+addr)
	t.Setenv("RUNNEL_REDIS_CA", a.file)
	t.Setenv("RUNNEL_REDIS_CERT", certFile)
	t.Setenv("RUNNEL_REDIS_KEY", keyFile)
	a.must(works(t, &runnel.Options{}))
	app := runnel.New("shop", nil)
	defer app.Close()
	if code, out, errs := mainOf(t.Context(), app, "doctor"); code != 0 || !strings.Contains(out, "ok       encryption: TLS, and the server's certificate is checked") {
		t.Errorf("doctor: code %d: %s%s", code, out, errs)
	}
	if code, out, errs := mainOf(t.Context(), runnel.New("shop", nil), "doctor", "--dev"); code != 0 || !strings.Contains(out, "encryption: none, on this machine") {
		t.Errorf("doctor --dev: code %d: %s%s", code, out, errs)
	}
	// The next connection reads a replaced certificate, but not a broken one.
	a.must(os.WriteFile(keyFile, []byte("half of a new one"), 0o600))
	a.must(server.Client(t).Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err())
	code, errs := 1, ""
	for tries := 0; code != 0 && tries < 20; tries++ { // each of the pool's connections is found closed once
		code, _, errs = mainOf(t.Context(), app, "stream", "ls")
	}
	if code != 0 {
		t.Errorf("who had read it: %s", errs)
	}
	fresh := runnel.New("shop", nil)
	defer fresh.Close()
	if code, _, errs := mainOf(t.Context(), fresh, "stream", "ls"); code != 1 || !strings.Contains(errs, "RUNNEL_REDIS_KEY): ") {
		t.Errorf("with a broken key: code %d: %s", code, errs)
	}
}
