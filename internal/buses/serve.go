package buses

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	envAddr     = "RUNNEL_WEBHOOK_ADDR"
	defaultAddr = "127.0.0.1:8080"
	leaveWithin = 5 * time.Second // for requests that run at the end
)

func serveCommand() extension.Command {
	return extension.Command{
		Call: "serve", Usage: "serve the HTTP API of a bus and deliver its events, for an app that has no code",
		Flags: append([]extension.Flag{
			{Name: flagBus, Usage: "`NAME` of the bus", Default: defaultName},
			{Name: flagAddr, Usage: "serve at this `ADDRESS` (" + envAddr + "; default " + defaultAddr + ")", Default: ""},
			{Name: "tls-cert", Usage: "`FILE` with the certificate and its chain; it is read again when it changes", Default: ""},
			{Name: "tls-key", Usage: "`FILE` with its key", Default: ""},
		}, allowFlags()...),
		Examples: []string{"PROG webhook serve", "PROG webhook serve --addr :8443 --tls-cert bus.pem --tls-key bus.key"},
		Work:     workServe,
	}
}

// workServe listens before the worker runs, so that an address that is taken is an error.
func workServe(app any, flags extension.Flags) (says string, err error) {
	allow := Hosts{HTTP: flags.Bool(flagAllowHTTP)}
	if allow.Addresses, err = prefixes(flags.String(flagAllow)); err != nil {
		return "", err
	}
	config, err := tlsConfig(flags.String("tls-cert"), flags.String("tls-key"))
	if err != nil {
		return "", err
	}
	name := cmp.Or(flags.String(flagBus), defaultName)
	api, open, err := Declare(app, name, allow)
	if err != nil {
		return "", err
	}
	listener, err := listen(cmp.Or(flags.String(flagAddr), os.Getenv(envAddr), defaultAddr))
	if err != nil {
		return "", err
	}
	scheme := "http"
	if config != nil {
		scheme, listener = "https", tls.NewListener(listener, config)
	}
	app.(*runnel.App).Task(name+"-api", func(ctx context.Context) error { return serve(ctx, listener, api) }, nil)
	return strings.Join(append([]string{fmt.Sprintf("bus %s at %s://%s/", name, scheme, listener.Addr())}, open...), "; "), nil
}

func listen(addr string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, extension.Usagef("--%s %q is no address, such as %s", flagAddr, addr, defaultAddr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flagAddr, addr, err)
	}
	return l, nil
}

// tlsConfig returns how to serve with the files, nil without any.
func tlsConfig(cert, key string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, extension.Usagef("--tls-cert and --tls-key belong together")
	}
	load, err := redisconn.TLSFiles{Cert: cert, Key: key}.KeyPair()
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() }}, nil
}

// serve serves until ctx ends, and lets requests that run end.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if server.Shutdown(patience) != nil {
		server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func runListen(ctx context.Context, r *request) error {
	var mu sync.Mutex // batches of several subscribers come at once
	h, err := Receive(r.Flags.String(flagSecret), func(b *Received) error {
		mu.Lock()
		defer mu.Unlock()
		return r.Print(b, func(t extension.Table) {
			t.Linef("%s, attempt %d:", b.Batch, b.Attempt)
			for _, e := range b.Events {
				data := ""
				if e.Data != nil {
					data = fmt.Sprintf(" %s", e.Data)
				}
				t.Linef("  %s %s %s%s", e.Topic, e.Type, e.URL, data)
			}
		})
	})
	if err != nil {
		return extension.Usagef("--%s: %v", flagSecret, err)
	}
	l, err := listen(r.Flags.String(flagAddr))
	if err != nil {
		return err
	}
	r.Note("batches are printed that are POSTed to http://%s/", l.Addr())
	return serve(ctx, l, h)
}
