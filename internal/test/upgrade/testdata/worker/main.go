// Command worker is a worker or a sender of an app, of the version that it is built against:
//
//	worker work NAME HISTORY
//	worker send NAME HISTORY REFUSER
//
// Some of the events fail wherever REFUSER is the version of the worker. Others fail at the worker
// of the name "stubborn": those of keys that are no UTF-8, and, unless the old version refuses
// them, those of keys longer than 1 KiB. The old version cannot read the state of either.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/runnel-go/runnel"
)

const (
	lease      = 5 * time.Second
	attempts   = 1_000_000 // no event becomes a dead letter
	minBackoff = 50 * time.Millisecond
	maxBackoff = 200 * time.Millisecond

	keys  = 64 // of a sender
	pause = 160 * time.Millisecond
)

type job struct {
	Key     string
	Seq     int64
	Refuser string
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(what, name, path string, rest []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	app := runnel.New("upgrade", options(name))
	defer app.Close()
	jobs := runnel.NewStream(app, "jobs", func(j job) string { return j.Key }, &runnel.StreamOptions{Partitions: 37})
	log, err := open(path, name)
	if err != nil {
		return err
	}
	if what == "send" {
		return send(ctx, log, jobs, name, rest[0])
	}
	jobs.Process("check", runnel.Each(func(_ context.Context, e *runnel.Event, j job) error {
		it, err := log.Begin(record{
			Stream: e.Stream, Processor: "check", Partition: e.Partition, Epoch: e.Epoch,
			IDs: []string{e.ID}, Keys: []string{printable(j.Key)}, Seqs: []int64{j.Seq}, Attempts: []int{e.Attempt},
		})
		if err != nil {
			return err
		}
		<-time.After(time.Millisecond)
		once := !unreadable(j.Key) && j.Seq%10 == 0 && e.Attempt == 1
		if once || j.Refuser == version || j.Refuser == name {
			return errors.Join(errors.New("as it should"), it.Fail())
		}
		return it.Complete()
	}), processing())
	return app.Run(ctx)
}

// unreadable reports whether the old version cannot read what the new one stores of a parked event
// of the key.
func unreadable(key string) bool { return !utf8.ValidString(key) || len(key) > 1<<10 }

// send sends rounds of one event for each key until ctx ends. A third of the keys is no UTF-8, and
// some are long. Of every eighth key the third event is refused.
func send(ctx context.Context, log *history, jobs *runnel.Stream[job], name, refuser string) error {
	for seq := int64(1); ctx.Err() == nil; seq++ {
		var round []runnel.Outgoing[job]
		for k := range keys {
			j, by := job{Key: fmt.Sprint(name, "-", k), Seq: seq}, refuser
			switch {
			case k%3 == 0:
				j.Key, by = "\xff\x00\xc3"+j.Key, "stubborn"
			case k%24 == 16:
				if j.Key += strings.Repeat("é", 1<<10); refuser != "old" {
					by = "stubborn"
				}
			}
			if k%8 == 0 && seq == 3 {
				j.Refuser = by
			}
			round = append(round, runnel.Outgoing[job]{Record: j})
		}
		sent, err := jobs.SendEvents(context.WithoutCancel(ctx), round...)
		if err != nil {
			return err
		}
		for i, s := range sent {
			if err := log.Sent("jobs", s.Partition, s.ID, printable(round[i].Record.Key), seq); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// printable is a key as JSON can hold it.
func printable(key string) string { return hex.EncodeToString([]byte(key)) }
