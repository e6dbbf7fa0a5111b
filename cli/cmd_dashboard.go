package cli

import (
	"context"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/extension"
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

func dashboardCommand(p *program) *cobra.Command {
	return p.command("dashboard", "serve a dashboard for the browser, and the metrics of the app as a whole at /metrics, until interrupted; it only reads, unless --allow-actions", flagList{
		newFlag(flagAddr, dashboardAddr, "serve at this `ADDRESS`; other than on the loopback, others can see the events"),
		newFlag(flagHosts, "", "answer only under these `NAMES`, with commas between them, such as those of a proxy (default localhost on the loopback, else any)"),
		newFlag(flagAllowActions, false, "let everyone who has the token pause, replay, drop and so on"),
		newFlag(flagTokenFile, "", "`FILE` with the token for actions (default "+envDashboardToken+")"),
	}, runDashboard,
		"PROG dashboard",
		"PROG dashboard --addr 127.0.0.1:9000 --hosts shop.example.com",
		"PROG dashboard --allow-actions --token-file /run/secrets/dashboard")
}

func runDashboard(ctx context.Context, s *session, c *call) error {
	addr := c.String(flagAddr)
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
	listener, err := extension.Listen("--"+flagAddr, addr)
	if err != nil {
		return err
	}
	if !isLoopback(host) {
		settings.Logger.Warn("dashboard open to the network", "addr", listener.Addr().String(), "actions", opts.AllowActions, "help", help.DashboardOpen)
	}
	printf(s.stderr, "dashboard of app %s: http://%s/\n", s.app.Name(), listener.Addr())
	return extension.Serve(ctx, listener, web.Handler(s.app, opts), time.Minute, leaveWithin)
}

// dashboardOptions reads the other flags.
func dashboardOptions(c *call, loopback bool) (*web.Options, error) {
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
