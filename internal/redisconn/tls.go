package redisconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// TLSFiles are files in PEM, such as for servers that a URL names; "" for none.
type TLSFiles struct {
	CA   string // certificates of authorities, in place of the system's
	Cert string // our own certificate, with its chain
	Key  string // and its key
}

// apply makes connections of a URL use the files. Files for an unencrypted connection are an error, as
// the connection was probably meant to be encrypted.
func (f TLSFiles) apply(o *redis.Options) error {
	if f == (TLSFiles{}) {
		return nil
	}
	if o.TLSConfig == nil {
		return errors.New("not encrypted: RUNNEL_REDIS_CA, RUNNEL_REDIS_CERT and RUNNEL_REDIS_KEY are for a URL that begins with rediss://")
	}
	return f.add(o.TLSConfig)
}

// add reads the files into a configuration. Certificate and key are read again for each connection,
// since short-lived ones are replaced while the program runs.
func (f TLSFiles) add(cfg *tls.Config) error {
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return fmt.Errorf("certificates of authorities (RUNNEL_REDIS_CA): %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("certificates of authorities (RUNNEL_REDIS_CA): %s has none in PEM", f.CA)
		}
	}
	if f.Cert == "" && f.Key == "" {
		return nil
	}
	if f.Cert == "" || f.Key == "" {
		return errors.New("certificate: RUNNEL_REDIS_CERT and RUNNEL_REDIS_KEY belong together, and only one of them is set")
	}
	load, err := f.keyPair()
	if err != nil {
		return fmt.Errorf("certificate (RUNNEL_REDIS_CERT, RUNNEL_REDIS_KEY): %w", err)
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return nil
}

// Server returns how to serve with certificate and key, which are read again for each connection.
func (f TLSFiles) Server() (*tls.Config, error) {
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("certificate and key belong together")
	}
	load, err := f.keyPair()
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() }}, err
}

// keyPair reads certificate and key, and returns a function that reads them again; see keyPair.load.
func (f TLSFiles) keyPair() (load func() (*tls.Certificate, error), err error) {
	pair := &keyPair{files: f}
	_, err = pair.load()
	return pair.load, err
}

// A keyPair is the last certificate that could be read.
type keyPair struct {
	files TLSFiles

	mu   sync.Mutex
	last *tls.Certificate
}

// load reads the certificate. If that fails, as while only one of the files has been replaced, load
// returns the last certificate that could be read.
func (p *keyPair) load() (*tls.Certificate, error) {
	read, err := tls.LoadX509KeyPair(p.files.Cert, p.files.Key)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.last = &read
	case p.last == nil:
		return nil, err
	}
	return p.last, nil
}

// tlsError explains an error of a first request that concerns TLS, and returns nil for any other error.
func tlsError(err error, encrypted bool) error {
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var timeout net.Error
	switch {
	case errors.As(err, &verify):
		return fmt.Errorf("server certificate not accepted: %s; RUNNEL_REDIS_CA names a file with the authority that issued it", verify.Err)
	case errors.As(err, &record):
		return errors.New("server does not speak TLS: is it the right port? Without TLS the URL begins with redis://")
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls: "):
		return fmt.Errorf("the server refused the TLS handshake: %s; if a client certificate is required, RUNNEL_REDIS_CERT and RUNNEL_REDIS_KEY name its files", err)
	case encrypted && errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w: it may not speak TLS; without it the URL begins with redis://", err)
	case !encrypted && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return fmt.Errorf("%w: it closed the connection at once; if it speaks TLS, the URL begins with rediss://", err)
	}
	return nil
}

// A Link describes a client's connections, as far as its options show.
type Link struct {
	TLS       bool
	Unchecked bool // TLS, but the certificate is not verified
	Here      bool // the server is on this machine
	Password  bool
	Custom    bool // the client dials by itself: the rest may be otherwise
}

// Link describes how the client is connected.
func (s *server) Link() Link {
	o := s.base
	return Link{
		TLS: o.TLSConfig != nil, Unchecked: o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify && o.TLSConfig.VerifyConnection == nil && o.TLSConfig.VerifyPeerCertificate == nil,
		Here:     o.Network == "unix" || !slices.ContainsFunc(strings.Split(o.Addr, ","), away),
		Password: o.Password != "" || o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil,
	}
}

// away reports whether an address is, or may be, that of another machine.
func away(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback())
}
