package buses_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/metrics"
)

// output is what a command that goes on has written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start runs a command until stop, which returns its code.
func (p *post) start(args ...string) (out, errs *output, stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	out, errs = &output{}, &output{}
	code := make(chan int, 1)
	go func() {
		code <- cli.Main(ctx, nil, append(args, "--app", "post", "--redis-url", p.url), strings.NewReader(""), out, errs)
	}()
	p.t.Cleanup(cancel)
	return out, errs, func() int {
		cancel()
		return <-code
	}
}

var served = regexp.MustCompile(`https?://([0-9.:]+)/`)

// addressIn waits until a command has said where it serves.
func (p *post) addressIn(errs *output) string {
	p.t.Helper()
	redistest.Eventually(p.t, "the address is said", func() bool { return served.MatchString(errs.String()) })
	return served.FindStringSubmatch(errs.String())[1]
}

// writePair writes a new certificate for the loopback, with its key, and returns its serial number.
func writePair(t *testing.T, certFile, keyFile string) *big.Int {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial := big.NewInt(time.Now().UnixNano())
	cert := &x509.Certificate{SerialNumber: serial, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serial
}

// An app without code has a bus by webhook serve, whose events webhook listen receives.
func TestServeAndListen(t *testing.T) {
	t.Setenv("RUNNEL_WEBHOOK_ROOT_TOKEN", "root-of-this-test-alone")
	p := opened(t, redistest.Start(t).Addr())
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "bus.pem"), filepath.Join(dir, "bus.key")
	first := writePair(t, cert, key)
	p.run(1, "--tls-cert, --tls-key: certificate and key belong together", "webhook", "serve", "--tls-cert", cert)
	p.run(1, "missing port in address", "webhook", "serve", "--addr", "9")
	_, said, stop := p.start(append([]string{"webhook", "serve", "--addr", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key}, allowed...)...)
	addr := p.addressIn(said)
	serial := func() *big.Int {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
		q, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+addr+"/topics", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.SetBasicAuth("root-of-this-test-alone", "x")
		resp, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", resp.Status, body)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber
	}
	if got := serial(); got.Cmp(first) != 0 {
		t.Errorf("another certificate: %v, want %v", got, first)
	}
	if second := writePair(t, cert, key); serial().Cmp(second) != 0 {
		t.Error("the files were not read again")
	}
	redistest.Eventually(t, "the bus is there", func() bool {
		return cli.Main(t.Context(), nil, []string{"webhook", "subs", "--app", "post", "--redis-url", p.url}, strings.NewReader(""), io.Discard, io.Discard) == 0
	})
	p.run(2, "--secret: ", "webhook", "listen", "--secret", "x")
	got, said, end := p.start("webhook", "listen", "--addr", "127.0.0.1:0", "--output", "json")
	p.run(0, "is subscribed", append([]string{"webhook", "subscribe", "mail", "http://" + p.addressIn(said) + "/", "orders"}, allowed...)...)
	p.publish("orders")
	redistest.Eventually(t, "the batch is printed", func() bool { return strings.Contains(got.String(), `"url":"https://x/1"`) })
	if code := end(); code != 0 {
		t.Errorf("listen ended with %d", code)
	}
	p.measured()
	if code := stop(); code != 0 {
		t.Errorf("serve ended with %d", code)
	}
}

// measured looks at the metrics of the app as a whole.
func (p *post) measured() {
	app := runnel.New("post", &runnel.Options{RedisURL: p.url, LogLevel: "error"})
	defer app.Close()
	redistest.Eventually(p.t, "the event is settled", func() bool { return p.one("mail").Sent == 1 })
	rec := httptest.NewRecorder()
	metrics.OverviewHandler(app, nil).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`stored_queued_events{app="post",bus="bus"} 0`, `stored_oldest_seconds{app="post",bus="bus"} 0`, `stored_dropped_events{app="post",bus="bus"} 0`,
		`stored_subscribers{app="post",bus="bus",state="ok"} 1`, `stored_subscribers{app="post",bus="bus",state="disabled"} 0`,
		`stored_subscriber_queued_events{app="post",bus="bus",subscriber="mail"} 0`,
	} {
		if !strings.Contains(rec.Body.String(), "\nrunnel_app_webhook_"+want+"\n") {
			p.t.Errorf("no %s in %s", want, rec.Body)
		}
	}
}
