package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/entryid"
)

// sentRecord is what `send` tells.
type sentRecord struct {
	Stream    string `json:"stream"`
	Partition int    `json:"partition"`
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitempty"` // it was sent before, as ID
}

var keyFlag = &cli.StringFlag{Name: flagKey, Usage: "send under this `KEY` instead of the record's own"}

func sendCommand(p *program) *cli.Command {
	return p.command(&cli.Command{
		Name:      "send",
		Usage:     "send one record; prints stream, partition and entry ID",
		ArgsUsage: "STREAM JSON|-",
		Flags: []cli.Flag{keyFlag,
			&cli.StringFlag{Name: "id",
				Usage: "send nothing if something was sent under this `ID` lately, to the same partition; prints what that was"},
			&cli.StringFlag{Name: flagAt, Usage: "delay it until this `TIME`, such as 2026-01-31T08:00:00Z; prints an ID for delayed cancel"},
			&cli.DurationFlag{Name: flagAfter, DefaultText: "not delayed", Usage: "delay it by this `TIME`, such as 1h30m"},
		},
		Action: p.action(runSend),
	},
		`PROG send orders '{"customer":"ada","amount":9.99}'`,
		`PROG send orders '{"amount":9.99}' --key ada`,
		`PROG send orders '{"customer":"ada","amount":9.99}' --id invoice-17   # twice is once`,
		`PROG send orders '{"customer":"ada","amount":9.99}' --after 1h`,
		`PROG send orders - < order.json`)
}

func runSend(ctx context.Context, s *session, c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef(c, "a stream and a JSON value are needed, not %d arguments", c.NArg())
	}
	record := appview.JSONRecord{JSON: []byte(c.Args().Get(1)), Key: keyOf(c), ID: c.String("id")}
	if err := delayOf(c, &record); err != nil {
		return err
	}
	if c.Args().Get(1) == "-" {
		var err error
		if record.JSON, err = readAll(ctx, s.stdin, maxLine); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
	}
	to, err := s.target(ctx, c, c.Args().First())
	if err != nil {
		return err
	}
	sent := to.send(ctx, []appview.JSONRecord{record})[0]
	id := sent.ID // of a delayed event it has the partition
	if !strings.Contains(id, "/") {
		id = entryid.EventID(sent.Partition, id)
	}
	switch {
	case errors.Is(sent.Err, runnel.ErrNotReplicated):
		return fmt.Errorf("stream %s: it was sent as %s, and a failover may lose it: %w", to.name, id, sent.Err)
	case sent.Unknown:
		return fmt.Errorf("stream %s: it may have been sent or not: %w", to.name, sent.Err)
	case sent.Err != nil:
		return fmt.Errorf("stream %s: not sent: %w", to.name, sent.Err)
	}
	told := to.name + " " + id
	if sent.Duplicate {
		told += " duplicate"
	}
	return unwritten("sent as "+told, s.out.write(sentRecord{to.name, sent.Partition, id, sent.Duplicate}, func(w io.Writer) error {
		_, err := printf(w, "%s\n", told)
		return err
	}))
}

func keyOf(c *cli.Context) *string {
	if !c.IsSet(flagKey) {
		return nil
	}
	key := c.String(flagKey)
	return &key
}

// readAll is io.ReadAll, of so many bytes at most, that ends with ctx. A read from a terminal cannot be
// ended from outside: then it stays behind, and ends with the process.
func readAll(ctx context.Context, r io.Reader, most int) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
		if err == nil && len(data) > most {
			data, err = nil, fmt.Errorf("longer than %d bytes, which is more than Redis takes", most)
		}
		done <- result{data, err}
	}()
	select {
	case got := <-done:
		return got.data, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
