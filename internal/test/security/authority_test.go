package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// An authority issues certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key, a.cert = a.sign("ca", template, nil)
	a.file = filepath.Join(a.dir, "ca.crt")
	return a
}

// issue writes NAME.crt and NAME.key, a certificate for this machine.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	a.sign(name, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, a.cert)
	return filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
}

// sign makes a certificate, self-signed without an issuer.
func (a *authority) sign(name string, template, issuer *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	template.SerialNumber = big.NewInt(mathrand.Int64())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if issuer == nil {
		issuer, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, signer)
	a.must(err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	a.must(err)
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", pkcs8)
	cert, err := x509.ParseCertificate(der)
	a.must(err)
	return key, cert
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	a.must(os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (a *authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// freePort returns a port below the ephemeral ones, as redistest does.
func freePort(t *testing.T) string {
	t.Helper()
	for range 20 {
		port := strconv.Itoa(15000 + mathrand.IntN(17000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}
