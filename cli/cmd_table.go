package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

const flagPrefix = "prefix"

func tableCommand(p *program) *cobra.Command {
	ls := p.command("ls [STREAM]", "list tables: the processor that has one, codec, TTL, rows and what they take in Redis", nil, connected(runTableLs),
		"PROG table ls",
		"PROG table ls orders --output json")
	get := p.command("get STREAM/TABLE KEY", "show the row of a key, decoded, as it is committed", flagList{
		newFlag(flagPartition, 0, "the row in partition `N` (default: where the key belongs; of a local table all)"),
	}, connected(runTableGet),
		"PROG table get orders/totals ada",
		"PROG table get orders/seen 7341 --partition 3 --output json")
	dump := p.command("dump STREAM/TABLE", "write rows, decoded, in no order: a line of JSON each", flagList{
		partitionFlag(),
		newFlag(flagPrefix, "", "only rows whose key begins with this `TEXT`"),
		limitFlag("at most `N` rows"),
	}, connected(runTableDump),
		"PROG table dump orders/totals",
		"PROG table dump orders/totals --prefix eu. --limit 100")
	rm := p.command("rm STREAM/TABLE", "remove a table with its rows, while no worker runs its processor", flagList{yesFlag(), dryRunFlag()}, connected(runTableRm),
		"PROG table rm orders/totals --yes",
		"PROG table rm orders/totals --dry-run")
	return p.group("table", "look after the tables of processors", ls, get, dump, rm)
}

func runTableLs(ctx context.Context, s *session, _ *call) error {
	names := []string{s.stream}
	if s.stream == "" {
		var err error
		if names, err = s.client.Streams(ctx); err != nil {
			return err
		}
	}
	list := []inspect.TableState{}
	for _, name := range names {
		m, there, err := s.client.LoadMeta(ctx, name)
		switch {
		case err != nil:
			return err
		case !there && s.stream != "":
			return s.noStream(ctx, name)
		}
		list = append(list, inspect.Tables(ctx, s.client, name, m, "")...)
	}
	return s.out.table(list, func(t table) { writeTables(t, list) })
}

// writeTables lists tables.
func writeTables(t table, list []inspect.TableState) {
	fmt.Fprintln(t, "TABLE\tPROCESSOR\tCODEC\tTTL\tLOCAL\tROWS\tOVERDUE\tBYTES")
	for _, one := range list {
		name := one.Stream + "/" + one.Table
		if one.Err != "" {
			t.row(name, one.Processor, one.Err)
			continue
		}
		local := "no"
		if one.Local {
			local = "yes"
		}
		t.row(name, one.Processor, one.Codec, ageOf(one.TTL, one.TTL > 0), local, one.Rows, one.Overdue, known(one.Bytes, "-"))
	}
}

// A namedTable is the table that an argument names.
type namedTable struct {
	*session
	name  string
	meta  store.Meta
	table store.TableMeta
	look  *records.Decoder
}

func (s *session) findTable(ctx context.Context, c *call) (*namedTable, error) {
	t := &namedTable{session: s}
	s.stream, t.name, _ = strings.Cut(c.arg(0), "/")
	var err error
	if t.meta, err = s.metadata(ctx, s.stream); err == nil {
		t.table, err = t.meta.Table(s.stream, t.name)
	}
	if err == nil {
		t.look, err = s.decoder(ctx, s.stream)
	}
	return t, err
}

// A shownRow is what `table get` and `table dump` print.
type shownRow struct {
	Partition int             `json:"partition"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value,omitempty"`
	Until     *time.Time      `json:"until,omitempty"` // when it ends, by the partition's time
	Err       string          `json:"err,omitempty"`   // why there is no value
}

func (t *namedTable) show(partition int, r store.KeyedRow) *shownRow {
	one := &shownRow{Partition: partition, Key: store.KeyText(r.Key)}
	if r.Until > 0 {
		until := time.UnixMilli(r.Until).UTC()
		one.Until = &until
	}
	var err error
	if one.Value, err = t.look.Row(t.name, r.Value); err != nil {
		one.Err = err.Error()
	}
	return one
}

func runTableGet(ctx context.Context, s *session, c *call) error {
	t, err := s.findTable(ctx, c)
	if err != nil {
		return err
	}
	key := c.arg(1)
	partitions, err := chosenPartitions(c, t.stream, t.meta.Partitions)
	if err != nil {
		return err
	}
	if !c.IsSet(flagPartition) {
		partitions = t.look.RowPartitions(t.name, key)
	}
	found, err := inspect.FindRows(ctx, s.client, t.stream, t.name, t.table, key, partitions)
	if err != nil {
		return err
	}
	for _, row := range found {
		one := t.show(row.Partition, row.KeyedRow)
		if one.Err != "" && !s.out.json {
			return fmt.Errorf("stream %s partition %d: table %s: the row of key %q cannot be decoded: %s", t.stream, row.Partition, t.name, key, one.Err)
		}
		if err := s.out.write(one, func(w io.Writer) error {
			_, err := printf(w, "%s\n", one.Value)
			return err
		}); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		where := "no partition has one"
		if len(partitions) == 1 {
			where = fmt.Sprintf("partition %d has none", partitions[0])
		}
		return fmt.Errorf("stream %s: table %s has no row with key %q: %s", t.stream, t.name, key, where)
	}
	return nil
}

func runTableDump(ctx context.Context, s *session, c *call) error {
	if err := checkLimit(c); err != nil {
		return err
	}
	t, err := s.findTable(ctx, c)
	if err != nil {
		return err
	}
	partitions, err := chosenPartitions(c, t.stream, t.meta.Partitions)
	if err != nil {
		return err
	}
	lines := output{w: &escaping{w: raw(s.out.w), json: true}, json: true}
	left, prefix := c.Int(flagLimit), c.String(flagPrefix)
	for _, n := range partitions {
		place := s.client.Table(t.stream, t.name, n)
		place.Lasting = !t.table.Ends
		for row, err := range s.client.RowsWith(ctx, place, prefix) {
			if err != nil {
				return err
			}
			if err := lines.write(t.show(n, row), nil); err != nil {
				return err
			}
			if left--; left == 0 {
				return nil
			}
		}
	}
	return nil
}

// removedTable is what `table rm` prints.
type removedTable struct {
	admin.RemovedTable
	DryRun bool `json:"dry_run"`
}

func runTableRm(ctx context.Context, s *session, c *call) error {
	t, err := s.findTable(ctx, c)
	if err != nil {
		return err
	}
	gone, err := s.admin.RemoveTable(ctx, t.stream, t.name, &admin.RemoveOptions{DryRun: true})
	if err != nil {
		return err
	}
	name := t.stream + "/" + t.name
	if c.Bool(flagDryRun) {
		return s.out.line(removedTable{gone, true}, "table %s would be removed, with %s", name, words.Plural(gone.Rows, "row"))
	}
	if err := s.confirm(c, "Remove table %s for good, with %s? Its processor %s does not process events again for that.", name, words.Plural(gone.Rows, "row"), gone.Processor); err != nil {
		return err
	}
	did, err := s.audited(ctx, c, "table/rm", name, func(ctx context.Context) (did string, err error) {
		gone, err = s.admin.RemoveTable(ctx, t.stream, t.name, nil)
		return fmt.Sprintf("table %s removed, with %s", name, words.Plural(gone.Rows, "row")), err
	})
	if err != nil {
		return err
	}
	s.far.done()
	return s.out.line(removedTable{gone, false}, "%s", did)
}
