package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/monotime"
)

// serverPatience is how long sendmany waits for a server that it lost.
const serverPatience = 5 * time.Second

func sendManyCommand(p *program) *cobra.Command {
	return p.command("sendmany STREAM FILE...|-", "send records, one JSON value per line, from files of any size",
		flagList{keyFlag(), newFlag("stop-on-error", false, "send nothing after the first line that fails")}, runSendMany,
		"PROG sendmany orders orders.ndjson",
		"PROG sendmany orders monday.ndjson tuesday.ndjson --stop-on-error",
		"zcat orders.ndjson.gz | PROG sendmany orders - 2> errors.txt")
}

func runSendMany(ctx context.Context, s *session, c *call) error {
	if len(c.args) < 2 {
		return usagef(c, "a stream and at least one file, or - for standard input, are needed")
	}
	files := c.args[1:]
	if err := checkFiles(files); err != nil {
		return fmt.Errorf("nothing was sent: %w", err)
	}
	to, err := s.target(ctx, c, s.stream)
	if err != nil {
		return err
	}
	b := &bulk{
		session: s, to: to, key: keyOf(c), stopOnError: c.Bool("stop-on-error"),
		arrays: to.arrays || s.program.app == nil && c.IsSet(flagKey),
		report: newReport(s.stderr, len(files) > 1),
	}
	b.report.all = sizeOf(files)
	err = b.run(ctx, files)
	b.report.far.clear()
	if sumErr := b.summary(); sumErr != nil {
		return sumErr
	}
	if err == nil && b.Failed > 0 {
		return exitCode(1)
	}
	return err
}

// checkFiles finds mistakes before anything is sent.
func checkFiles(files []string) error {
	for i, file := range files {
		if file == "-" {
			if slices.Contains(files[:i], file) {
				return errors.New("standard input can be read only once")
			}
			continue
		}
		if mayBlock(file) {
			continue // the writer of a pipe would lose its reader
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		f.Close()
		if err != nil {
			return err
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a directory", file)
		}
	}
	return nil
}

// mayBlock reports whether opening a file, or reading it, may take for ever.
func mayBlock(file string) bool {
	info, err := os.Stat(file)
	return file == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// A bulk is one sendmany.
type bulk struct {
	*session
	to          *target
	key         *string
	stopOnError bool
	arrays      bool // a record may be an array
	report      *report
	counts
}

// counts is what sendmany prints. Failed includes the unknown.
type counts struct {
	Sent    int64 `json:"sent"`
	Failed  int64 `json:"failed"`
	Unknown int64 `json:"unknown"`
}

func (b *bulk) summary() error {
	text := fmt.Sprintf("sent %d, failed %d", b.Sent, b.Failed)
	if b.Unknown > 0 {
		text += fmt.Sprintf(" (%d of these may have been sent all the same)", b.Unknown)
	}
	return b.out.line(b.counts, "%s", text)
}

// run sends what it reads, and reads on meanwhile.
func (b *bulk) run(ctx context.Context, files []string) error {
	reading, stop := context.WithCancel(ctx)
	batches := make(chan batch, 1)
	var reader sync.WaitGroup
	reader.Go(func() { readBatches(reading, files, b.arrays, b.stdin, batches) })
	// A read from a terminal or a pipe cannot be interrupted: it stays behind, and ends with
	// the process.
	defer func() {
		stop()
		if !slices.ContainsFunc(files, mayBlock) {
			reader.Wait()
		}
	}()
	var last line
	for {
		select {
		case <-ctx.Done():
			if last.number == 0 {
				return errors.New("interrupted before anything was sent")
			}
			return fmt.Errorf("interrupted: nothing after %s was sent", b.report.place(last))
		case next, more := <-batches:
			if !more {
				return nil
			}
			if len(next.lines) > 0 {
				last = next.lines[len(next.lines)-1]
				if err := b.batch(ctx, next.lines); err != nil {
					return err
				}
			}
			if next.err != nil {
				return next.err
			}
		}
	}
}

// batch sends lines and reports those that failed. An error means to stop.
func (b *bulk) batch(ctx context.Context, lines []line) error {
	for _, l := range lines {
		b.report.read += int64(len(l.json)) + 1
	}
	lines, bad := b.usable(lines)
	records := make([]appview.JSONRecord, len(lines))
	for i, l := range lines {
		records[i] = appview.JSONRecord{JSON: l.json, Key: b.key}
	}
	// A batch under way is completed when ctx ends. Its outcome would be unknown otherwise.
	results := b.to.send(context.WithoutCancel(ctx), records)
	gone := b.count(lines, results)
	if bad != nil {
		b.Failed++
		b.report.refused(*bad, bad.err)
	}
	b.report.progress(b.counts)
	switch {
	case b.stopOnError && b.Failed > 0:
		return errors.New("stopped at the first failure (--stop-on-error)")
	case gone:
		if err := b.await(ctx); err != nil {
			return fmt.Errorf("stopped: nothing after %s was sent: %w", b.report.place(lines[len(lines)-1]), err)
		}
	}
	return nil
}

// usable returns the lines that can be sent: with --stop-on-error those before the first bad one,
// which it also returns.
func (b *bulk) usable(lines []line) (good []line, bad *line) {
	for i := range lines {
		l := &lines[i]
		if l.err == nil && b.stopOnError {
			l.err = b.to.check(appview.JSONRecord{JSON: l.json, Key: b.key})
		}
		switch {
		case l.err == nil:
			good = append(good, *l)
		case b.stopOnError:
			return good, l
		default:
			b.Failed++
			b.report.refused(*l, l.err)
		}
	}
	return good, nil
}

// count counts the outcomes of a batch and reports failures. lost reports whether the server may
// be out of reach.
func (b *bulk) count(lines []line, results []appview.JSONSent) (lost bool) {
	var failures failures
	for i, r := range results {
		if r.Err == nil {
			b.Sent++
			continue
		}
		b.Failed++
		switch {
		case r.Refused:
			b.report.refused(lines[i], r.Err)
			continue
		case errors.Is(r.Err, runnel.ErrNotReplicated):
			b.Unknown++
			failures.add(lines[i], "sent, and a failover may lose it: "+oneLine(r.Err))
		case r.Unknown:
			b.Unknown++
			failures.add(lines[i], "may have been sent: "+oneLine(r.Err))
		default:
			failures.add(lines[i], "not sent: "+oneLine(r.Err))
		}
		lost = lost || r.Unknown || unreachable(r.Err)
	}
	b.report.failed(failures)
	return lost
}

// await waits for a server that was lost.
func (b *bulk) await(ctx context.Context) error {
	deadline := time.Now().Add(serverPatience)
	for {
		err := b.connect(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if !monotime.Sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}
