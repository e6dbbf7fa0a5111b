package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	flagCert    = "tls-cert"
	flagKey     = "tls-key"
	envAddr     = "RUNNEL_WEBHOOK_ADDR"
	defaultAddr = "127.0.0.1:8080"
	leaveWithin = 5 * time.Second // for requests that run at the end
)

func serveCommand() extension.Command {
	return extension.Command{
		Call: "serve", Usage: "serve the HTTP API of a bus and deliver its events, for an app that has no code",
		Flags: append([]extension.Flag{
			{Name: "bus", Usage: "`NAME` of the bus", Default: "bus"},
			{Name: flagAddr, Usage: "serve at this `ADDRESS` (" + envAddr + "; default " + defaultAddr + ")", Default: ""},
			{Name: flagCert, Usage: "`FILE` with the certificate and its chain; it is read again when it changes", Default: ""},
			{Name: flagKey, Usage: "`FILE` with its key", Default: ""},
		}, allowFlags()...),
		Examples: []string{"PROG webhook serve", "PROG webhook serve --addr :8443 --tls-cert bus.pem --tls-key bus.key"},
		Work:     workServe,
	}
}

// workServe listens before the worker runs, so that an address that is taken is an error. What New panics with is one, too.
func workServe(app any, flags extension.Flags) (says string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	var o Options
	if err := o.allow(flags); err != nil {
		return "", err
	}
	b := New(app.(*runnel.App), flags.String("bus"), &o)
	listener, err := extension.Listen("--"+flagAddr, cmp.Or(flags.String(flagAddr), os.Getenv(envAddr), defaultAddr))
	if err != nil {
		return "", err
	}
	scheme := "http"
	if files := (redisconn.TLSFiles{Cert: flags.String(flagCert), Key: flags.String(flagKey)}); files != (redisconn.TLSFiles{}) {
		config, err := files.Server()
		if err != nil {
			return "", fmt.Errorf("--%s, --%s: %w", flagCert, flagKey, err)
		}
		scheme, listener = "https", tls.NewListener(listener, config)
	}
	b.app.Task(b.name+"-api", func(ctx context.Context) error { return extension.Serve(ctx, listener, b, time.Minute, leaveWithin) }, nil)
	says = fmt.Sprintf("bus %s at %s://%s/", b.name, scheme, listener.Addr())
	if b.opts.RootToken == "" {
		says += "; there is no root without RUNNEL_WEBHOOK_ROOT_TOKEN, so that only the command webhook token makes tokens"
	}
	if len(b.opts.SealKeys) == 0 {
		says += "; secrets are stored as they are without RUNNEL_WEBHOOK_SEAL_KEYS"
	}
	return says, nil
}

func listenCommand() extension.Command {
	return extension.Command{
		Call: "listen", Usage: "receive batches and print them, for trying out, until interrupted", Examples: []string{"PROG webhook listen"}, Run: runListen,
		Flags: []extension.Flag{
			{Name: flagAddr, Usage: "listen at this `ADDRESS`", Default: "127.0.0.1:9999"},
			{Name: flagSecret, Usage: "refuse what is not signed with this `SECRET`", Default: ""},
		},
	}
}

func runListen(ctx context.Context, env *extension.Env) error {
	var opts ReceiveOptions
	if secret := env.Flags.String(flagSecret); secret != "" {
		if _, err := parseSecret(secret); err != nil {
			return extension.Usagef("--%s: %v", flagSecret, err)
		}
		opts.Secrets = []string{secret}
	}
	listener, err := extension.Listen("--"+flagAddr, env.Flags.String(flagAddr))
	if err != nil {
		return err
	}
	env.Note("batches are printed that are POSTed to http://%s/", listener.Addr())
	var mu sync.Mutex // batches of several subscribers come at once
	return extension.Serve(ctx, listener, Receive(opts, func(_ context.Context, b *Batch) error {
		mu.Lock()
		defer mu.Unlock()
		return env.Print(b, func(t extension.Table) {
			t.Linef("%s, attempt %d:", cmp.Or(b.ID, "-"), b.Attempt)
			for _, e := range b.Events {
				data, _ := e.Data.(json.RawMessage)
				t.Linef("  %s %s %s %s", e.Topic, e.Type, e.URL, data)
			}
		})
	}), time.Minute, leaveWithin)
}
