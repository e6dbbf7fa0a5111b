package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/entryid"
)

// sentRecord is what `send` prints.
type sentRecord struct {
	Stream    string `json:"stream"`
	Partition int    `json:"partition"`
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitempty"` // ID is that of an earlier send
}

const (
	flagAt    = "at"
	flagAfter = "after"
)

func keyFlag() *pflag.Flag {
	return newFlag(flagKey, "", "send under this `KEY` instead of the record's own")
}

func sendCommand(p *program) *cobra.Command {
	return p.command("send STREAM JSON|-", "send one record; prints stream, partition and entry ID", flagList{
		keyFlag(),
		newFlag(flagID, "", "send nothing if a record was sent under this `ID` lately, to the same partition; prints that one"),
		newFlag(flagAt, "", "delay it until this `TIME`, such as 2026-01-31T08:00:00Z; prints an ID for delayed cancel"),
		newFlag(flagAfter, time.Duration(0), "delay it by this `TIME`, such as 1h30m (default not delayed)"),
	}, runSend,
		`PROG send orders '{"customer":"ada","amount":9.99}'`,
		`PROG send orders '{"amount":9.99}' --key ada`,
		`PROG send orders '{"customer":"ada","amount":9.99}' --id invoice-17   # twice is once`,
		`PROG send orders '{"customer":"ada","amount":9.99}' --after 1h`,
		`PROG send orders - < order.json`)
}

func runSend(ctx context.Context, s *session, c *call) error {
	if len(c.args) != 2 {
		return usagef(c, "a stream and a JSON value are needed, not %d arguments", len(c.args))
	}
	record := appview.JSONRecord{JSON: []byte(c.arg(1)), Key: keyOf(c), ID: c.String(flagID)}
	if err := delayOf(c, &record); err != nil {
		return err
	}
	if c.arg(1) == "-" {
		var err error
		if record.JSON, err = readAll(ctx, s.stdin, maxLine); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
	}
	to, err := s.target(ctx, c, s.stream)
	if err != nil {
		return err
	}
	sent := to.send(ctx, []appview.JSONRecord{record})[0]
	id := sent.ID // with the partition if the event is delayed
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
	text := to.name + " " + id
	if sent.Duplicate {
		text += " duplicate"
	}
	return unwritten("sent as "+text, s.out.write(sentRecord{to.name, sent.Partition, id, sent.Duplicate}, func(w io.Writer) error {
		_, err := printf(w, "%s\n", text)
		return err
	}))
}

// delayOf reads the flags that delay a record.
func delayOf(c *call, r *appview.JSONRecord) error {
	r.After = c.Duration(flagAfter)
	switch {
	case c.IsSet(flagAt) && c.IsSet(flagAfter):
		return usagef(c, "either --at or --after")
	case c.IsSet(flagAfter) && r.After <= 0:
		return usagef(c, "--after is a time to come, such as 1h30m")
	case c.IsSet(flagAt):
		var err error
		if r.At, err = time.Parse(time.RFC3339, c.String(flagAt)); err != nil {
			return usagef(c, "--at %q is no time such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00.5+01:00", c.String(flagAt))
		}
	}
	return nil
}

// readAll reads all of r, at most so many bytes, until ctx ends. A read from a terminal cannot be
// interrupted: it stays behind, and ends with the process.
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
