package redistest

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strconv"
	"testing"
)

// TLS returns arguments of Start, StartCluster and StartWatched for TLS-only servers, including
// replication and sentinels. The files are PEM. All servers and the clients of this package have
// this certificate, which names 127.0.0.1; with mutual every client must show one.
func TLS(ca, cert, key string, mutual bool) []string {
	auth := "no"
	if mutual {
		auth = "yes"
	}
	return []string{
		"--tls-ca-cert-file", ca, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", auth,
		"--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

func tlsOnly(args []string) bool { return argument(args, "--tls-replication") == "yes" }

// tlsArguments are those of args that a sentinel of the server needs too.
func tlsArguments(args []string) []string {
	if !tlsOnly(args) {
		return nil
	}
	value := func(name string) string { return argument(args, name) }
	return TLS(value("--tls-ca-cert-file"), value("--tls-cert-file"), value("--tls-key-file"), value("--tls-auth-clients") == "yes")
}

// tlsConfig is that of clients, nil without TLS.
func tlsConfig(t testing.TB, args []string) *tls.Config {
	t.Helper()
	if !tlsOnly(args) {
		return nil
	}
	roots := x509.NewCertPool()
	text, err := os.ReadFile(argument(args, "--tls-ca-cert-file"))
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("start redis-server: certificates of authorities: %v", err)
	}
	cert, err := tls.LoadX509KeyPair(argument(args, "--tls-cert-file"), argument(args, "--tls-key-file"))
	if err != nil {
		t.Fatalf("start redis-server: certificate: %v", err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}
}

func (s *Server) listen() []string {
	port := strconv.Itoa(s.port)
	if s.tls != nil {
		return []string{"--port", "0", "--tls-port", port}
	}
	return []string{"--port", port}
}

// scheme is that of the server's URL, with what follows "redis" for others than one server.
func (s *Server) scheme(of string) string {
	if s.tls != nil {
		return "rediss" + of + "://"
	}
	return "redis" + of + "://"
}
