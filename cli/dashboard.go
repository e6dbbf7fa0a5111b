package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/web"
)

const (
	flagAddr         = "addr"
	flagHosts        = "hosts"
	flagAllowActions = "allow-actions"
	flagTokenFile    = "token-file"

	envDashboardToken = "RUNNEL_DASHBOARD_TOKEN"
	dashboardAddr     = "127.0.0.1:8080"
)

func dashboardCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:  "dashboard",
		Usage: "serve a dashboard for the browser, and at /metrics those of the app as a whole, until interrupted; it only reads, unless --allow-actions",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagAddr, DefaultText: dashboardAddr, Usage: "serve at this `ADDRESS`; other than on the loopback, others can see the events"},
			&cli.StringFlag{Name: flagHosts, DefaultText: "localhost on the loopback, else any", Usage: "answer only under these `NAMES`, with commas between them, such as those of a proxy"},
			&cli.BoolFlag{Name: flagAllowActions, DisableDefaultText: true, Usage: "let whoever has the token pause, replay, drop and so on"},
			&cli.StringFlag{Name: flagTokenFile, DefaultText: envDashboardToken, Usage: "`FILE` with the token for actions"},
		},
		Action: p.action(runDashboard),
	},
		"PROG dashboard",
		"PROG dashboard --addr 127.0.0.1:9000 --hosts shop.example.com",
		"PROG dashboard --allow-actions --token-file /run/secrets/dashboard")
}

func runDashboard(ctx context.Context, s *session, c *cli.Context) error {
	if c.Args().Present() {
		return usagef(c, "unexpected argument %q", c.Args().First())
	}
	addr := dashboardAddr
	if c.IsSet(flagAddr) {
		addr = c.String(flagAddr)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef(c, "--%s %q is no address, such as %s", flagAddr, addr, dashboardAddr)
	}
	opts, err := dashboardOptions(c, isLoopback(host))
	if err != nil {
		return err
	}
	settings, err := s.reg.Settings()
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("--%s %s: %w", flagAddr, addr, err)
	}
	if !isLoopback(host) {
		settings.Logger.Warn("dashboard open to the network", "addr", listener.Addr().String(), "actions", opts.AllowActions, "help", help.DashboardOpen)
	}
	printf(s.stderr, "dashboard of app %s: http://%s/\n", s.app.Name(), listener.Addr())
	return serveUntil(ctx, listener, web.Handler(s.app, opts))
}

// dashboardOptions reads the flags.
func dashboardOptions(c *cli.Context, loopback bool) (*web.Options, error) {
	opts := &web.Options{Hosts: list(c.String(flagHosts)), AllowActions: c.Bool(flagAllowActions), Token: os.Getenv(envDashboardToken)}
	if loopback && !c.IsSet(flagHosts) {
		opts.Hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	if file := c.String(flagTokenFile); c.IsSet(flagTokenFile) {
		if !opts.AllowActions {
			return nil, usagef(c, "--%s goes with --%s", flagTokenFile, flagAllowActions)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef(c, "--%s: %w", flagTokenFile, err)
		}
		opts.Token = strings.TrimSpace(string(text))
	}
	if opts.AllowActions && opts.Token == "" {
		return nil, usagef(c, "--%s needs a token: set %s, or say --%s", flagAllowActions, envDashboardToken, flagTokenFile)
	}
	if err := opts.Check(); err != nil {
		return nil, usagef(c, "%w", err)
	}
	return opts, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if server.Shutdown(patience) != nil {
		server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
