package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/logqueue"
	"github.com/runnel-go/runnel/internal/worker"
)

func workerCommand(p *program) *cobra.Command {
	flags := append(httpFlags(), processorsFlag())
	if p.app == nil {
		worker := p.plain("worker PACKAGE", "build and run the worker of a package", flags, p.buildWorker)
		worker.Example = "  runnel worker ./cmd/shop\n  runnel worker ./cmd/shop --processors orders/printer --log-format json\n  runnel worker ./cmd/shop --dev"
		return worker
	}
	return p.command("worker", "run processors and tasks until SIGTERM, SIGINT or SIGHUP, then drain", flags, runWorker,
		"PROG worker",
		"PROG worker --dev",
		"PROG worker --http :9090",
		"PROG worker --processors printer,orders/billing --log-format json")
}

func processorsFlag() *pflag.Flag {
	return newFlag("processors", "", "run only these `NAMES`: PROCESSOR or STREAM/PROCESSOR, with commas between them")
}

func runWorker(ctx context.Context, s *session, c *call) error {
	monitor, err := startMonitor(s, c)
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
	// The error is the server's, and not of something that a user's function called, if the
	// server still cannot be reached.
	if lost := s.connect(context.WithoutCancel(ctx)); lost != nil {
		return lost
	}
	return err
}

// list splits at commas and omits empty parts.
func list(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
