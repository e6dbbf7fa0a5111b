package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/logqueue"
	"github.com/runnel-go/runnel/internal/worker"
)

func workerCommand(p *program) *cli.Command {
	c := &cli.Command{
		Name:  "worker",
		Usage: "run processors and tasks until SIGTERM, SIGINT or SIGHUP, then drain",
		Flags: append(httpFlags(), &cli.StringFlag{Name: "processors", Usage: "run only these `NAMES`: PROCESSOR or STREAM/PROCESSOR, with commas between them"}),
	}
	if p.app == nil {
		c.Usage = "build and run the worker of a package"
		c.ArgsUsage = "PACKAGE"
		c.Action = p.buildWorker
		return p.command(c,
			"runnel worker ./cmd/shop",
			"runnel worker ./cmd/shop --processors orders/printer --log-format json",
			"runnel worker ./cmd/shop --dev")
	}
	c.Action = p.action(runWorker)
	return p.command(c,
		"PROG worker",
		"PROG worker --dev",
		"PROG worker --http :9090",
		"PROG worker --processors printer,orders/billing --log-format json")
}

func runWorker(ctx context.Context, s *session, c *cli.Context) error {
	if c.Args().Present() {
		return usagef(c, "unexpected argument %q; processors are chosen with --processors", c.Args().First())
	}
	monitor, err := s.startMonitor(c)
	if err != nil {
		return err
	}
	settings, err := s.reg.Settings()
	if err != nil {
		return err
	}
	logs := logqueue.New(settings.Logger.Handler())
	defer logs.Close()
	defer monitor.run(logs.Logger())()
	err = s.app.Run(ctx, list(c.String("processors"))...)
	if at := (*worker.EventError)(nil); errors.As(err, &at) {
		return fmt.Errorf("%w; %s; %s", err, inspect.PassOver(at.Stream, at.Processor, entryid.EventID(at.Partition, at.ID)), help.WorkerHalts)
	}
	if err == nil || !unreachable(err) {
		return err
	}
	// It is the server, and not something that a user's function could not
	// reach, if the server still cannot be reached.
	if lost := s.connect(context.WithoutCancel(ctx)); lost != nil {
		return lost
	}
	return err
}

// list splits at commas and leaves out what is empty.
func list(s string) []string {
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
