package cli

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/words"
)

// troublesShown is how many troubles `stream verify` shows without --limit.
const troublesShown = 20

func verifyCommand(p *program) *cobra.Command {
	return p.command("verify STREAM", "read all of a stream: can every entry be decoded, is each in its partition, was none deleted? Exit with 3 if not", flagList{
		newFlag(flagPartition, 0, "only partition `N` (default all)"),
		newFlag(flagLimit, troublesShown, "show at most `N` entries that are not right; all are counted"),
	}, runVerify,
		"PROG stream verify orders",
		"PROG stream verify orders --partition 3 --output json")
}

// A verified is what `stream verify` prints.
type verified struct {
	Stream     string              `json:"stream"`
	Partitions []verifiedPartition `json:"partitions"`
	Troubles   []entryTrouble      `json:"troubles"` // the first ones

	far       *progress
	seen, all int64 // entries
}

type verifiedPartition struct {
	Partition   int    `json:"partition"`
	Entries     int    `json:"entries"`     // that were read
	Undecodable int    `json:"undecodable"` // of these
	Misplaced   int    `json:"misplaced"`   // whose key belongs to another partition
	Deleted     string `json:"deleted"`     // the largest ID that was deleted between others, "" for none
	Err         string `json:"err,omitempty"`
}

// An entryTrouble is a fault of an entry.
type entryTrouble struct {
	Partition int    `json:"partition"`
	ID        string `json:"id"`
	What      string `json:"what"`
}

func runVerify(ctx context.Context, s *session, c *call) error {
	name := s.stream
	if c.Int(flagLimit) < 0 {
		return usagef(c, "--limit is 0 or more")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	meta, err := s.metadata(ctx, name)
	if err != nil {
		return err
	}
	numbers, err := chosenPartitions(c, name, meta.Partitions)
	if err != nil {
		return err
	}
	look, err := s.decoder(ctx, name)
	if err != nil {
		return err
	}
	logs, err := inspect.Logs(ctx, s.client, name, meta.Partitions)
	if err != nil {
		return err
	}
	v := &verified{Stream: name, Troubles: []entryTrouble{}, far: s.far}
	for _, n := range numbers {
		v.all += logs[n].Length
	}
	fine := true
	for part := range slices.Chunk(numbers, verifiedTogether) {
		if err := v.read(ctx, s, look, logs, part, c.Int(flagLimit)); err != nil {
			return err
		}
	}
	v.far.clear()
	for _, one := range v.Partitions {
		fine = fine && one.Undecodable+one.Misplaced == 0 && one.Deleted == "" && one.Err == ""
	}
	if err := s.out.table(v, v.write); err != nil || fine {
		return err
	}
	return exitThreshold
}

// verifiedTogether is how many partitions are read at once.
const verifiedTogether = 128

// read reads partitions up to where each ended in logs.
func (v *verified) read(ctx context.Context, s *session, look *records.Decoder, logs []inspect.LogState, numbers []int, limit int) error {
	at, open := map[int]int{}, []int{}
	for _, n := range numbers {
		one := verifiedPartition{Partition: n, Err: logs[n].Err}
		if log := logs[n]; one.Err == "" {
			if log.First != "" && log.Deleted != "" && entryid.Compare(log.Deleted, log.First) > 0 {
				one.Deleted = log.Deleted
			}
			if log.Length > 0 {
				open = append(open, n)
			}
		}
		at[n] = len(v.Partitions)
		v.Partitions = append(v.Partitions, one)
	}
	t := inspect.NewTail(s.client, v.Stream, open, "0-0")
	defer t.Close()
	for ended := map[int]bool{}; len(ended) < len(open); {
		e, ok, err := t.Next(ctx, false)
		if err != nil {
			return err
		}
		if !ok { // entries at the end were removed meanwhile
			break
		}
		if after := entryid.Compare(e.Entry.ID, logs[e.Partition].End); after >= 0 {
			ended[e.Partition] = true
			if after > 0 {
				continue
			}
		}
		v.judge(look, e, &v.Partitions[at[e.Partition]], limit)
		v.seen++
		v.far.of("verified", v.seen, v.all)
	}
	sort.SliceStable(v.Troubles, func(i, j int) bool { return v.Troubles[i].Partition < v.Troubles[j].Partition })
	return nil
}

// judge counts an entry, and notes its fault if there is one.
func (v *verified) judge(look *records.Decoder, e inspect.TailedEvent, one *verifiedPartition, limit int) {
	one.Entries++
	what := ""
	if _, err := look.Record(e.Entry); err != nil {
		one.Undecodable++
		what = "cannot be decoded: " + words.Summary(err.Error())
	} else if n, known := look.Partition(e.Entry); known && n != e.Partition {
		one.Misplaced++
		what = fmt.Sprintf("belongs to partition %d by its key", n)
	}
	if what != "" && len(v.Troubles) < limit {
		v.Troubles = append(v.Troubles, entryTrouble{e.Partition, entryid.EventID(e.Partition, e.Entry.ID), what})
	}
}

func (v *verified) write(t table) {
	fmt.Fprintln(t, "PARTITION\tENTRIES\tUNDECODABLE\tMISPLACED\tDELETED UP TO")
	total := verifiedPartition{}
	for _, p := range v.Partitions {
		if p.Err != "" {
			t.row(p.Partition, p.Err)
			continue
		}
		t.row(p.Partition, p.Entries, p.Undecodable, p.Misplaced, words.Dash(p.Deleted))
		total.Entries, total.Undecodable, total.Misplaced = total.Entries+p.Entries, total.Undecodable+p.Undecodable, total.Misplaced+p.Misplaced
	}
	t.row("total", total.Entries, total.Undecodable, total.Misplaced)
	for _, e := range v.Troubles {
		t.linef("%s: %s", e.ID, e.What)
	}
	if more := total.Undecodable + total.Misplaced - len(v.Troubles); more > 0 {
		t.linef("and %d more", more)
	}
}
