package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/metrics"
)

const (
	flagHTTP  = "http"
	flagPprof = "pprof"

	envHTTP = "RUNNEL_HTTP"

	leaveWithin = time.Second // for requests that run at the end
)

func httpFlags() flagList {
	return flagList{
		newFlag(flagHTTP, "", "serve /metrics, /healthz and /readyz at this `ADDRESS`, such as :9090 ("+envHTTP+"; default no server)"),
		newFlag(flagPprof, false, "serve /debug/pprof there, too: profiles show what runs, and cost while they are taken"),
	}
}

// A monitor is a worker's HTTP server for probes and metrics.
type monitor struct {
	listener net.Listener
	handler  http.Handler
}

// sameMachine refuses requests by the name of another host where only this machine is served. A
// page in a browser could otherwise read the answers through a name that resolves to this address.
func sameMachine(listener net.Listener, next http.Handler) http.Handler {
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.Trim(host, "[]")
		if host != "" && !strings.EqualFold(host, "localhost") && net.ParseIP(host) == nil {
			http.Error(w, fmt.Sprintf("not served as %q", host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// startMonitor listens at the address of --http or RUNNEL_HTTP. Without an address it returns
// nil, whose methods do nothing.
func startMonitor(s *session, c *call) (*monitor, error) {
	addr, from := c.String(flagHTTP), "--"+flagHTTP
	if addr == "" && !c.IsSet(flagHTTP) {
		addr, from = os.Getenv(envHTTP), envHTTP
	}
	if addr == "" {
		if c.Bool(flagPprof) {
			return nil, usagef(c, "--%s goes with --%s", flagPprof, flagHTTP)
		}
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, usagef(c, "%s %q is no address with a port, such as :9090 or 127.0.0.1:9090", from, addr)
	}
	listener, err := extension.Listen(from, addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(s.app, nil))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.app.Ready()) })
	if c.Bool(flagPprof) {
		mux.HandleFunc("GET /debug/pprof/{profile}", serveProfile)
	}
	return &monitor{listener, sameMachine(listener, mux)}, nil
}

// answer writes ok, or what is missing.
func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, scriptPlace.ReplaceAllString(err.Error(), ""))
		return
	}
	fmt.Fprintln(w, "ok")
}

// scriptPlace matches the place in a script at which Redis met an error. The log has it.
var scriptPlace = regexp.MustCompile(` script: [0-9a-f]{40}, on @user_script:\d+\.?`)

// run serves until stop is called.
func (m *monitor) run(log *slog.Logger) (stop func()) {
	if m == nil {
		return func() {}
	}
	log.Info("http listening", "addr", m.listener.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := extension.Serve(ctx, m.listener, m.handler, 0, leaveWithin); err != nil {
			log.Error("http server ended", "err", err)
		}
	})
	return func() {
		cancel()
		serving.Wait()
	}
}
