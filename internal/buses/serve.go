package buses

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
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
	config, err := tlsConfig(flags.String("tls-cert"), flags.String("tls-key"))
	if err != nil {
		return "", err
	}
	name := cmp.Or(flags.String(flagBus), defaultName)
	api, open, err := Declare(app, name, flags)
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
	app.(*runnel.App).Task(name+"-api", func(ctx context.Context) error { return extension.Serve(ctx, listener, api, time.Minute, leaveWithin) }, nil)
	return strings.Join(append([]string{fmt.Sprintf("bus %s at %s://%s/", name, scheme, listener.Addr())}, open...), "; "), nil
}

func listen(addr string) (net.Listener, error) {
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

func runListen(ctx context.Context, r *request) error {
	h, err := Receive(r.Flags.String(flagSecret), r.Print)
	if err != nil {
		return extension.Usagef("--%s: %v", flagSecret, err)
	}
	l, err := listen(r.Flags.String(flagAddr))
	if err != nil {
		return err
	}
	r.Note("batches are printed that are POSTed to http://%s/", l.Addr())
	return extension.Serve(ctx, l, h, time.Minute, leaveWithin)
}
