package exact

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// perPage is how many entries are read at a time.
const perPage = 2000

// Entries reads all entries of a stream, by the keys of its partitions.
func Entries(ctx context.Context, rdb redis.UniversalClient, keys []string) (out [][]Entry, err error) {
	for p, key := range keys {
		var entries []Entry
		for from := "-"; ; {
			page, err := rdb.XRangeN(ctx, key, from, "+", perPage).Result()
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", key, err)
			}
			for _, m := range page {
				e := Entry{Partition: p, ID: m.ID}
				data, _ := m.Values["data"].(string)
				if err := json.Unmarshal([]byte(data), &e.Mark); err != nil {
					return nil, fmt.Errorf("read %s: entry %s: %w", key, m.ID, err)
				}
				entries = append(entries, e)
			}
			if len(page) < perPage {
				break
			}
			from = "(" + page[len(page)-1].ID
		}
		out = append(out, entries)
	}
	return out, nil
}

// Rows reads all rows of a table, by the keys of its parts.
func Rows(ctx context.Context, rdb redis.UniversalClient, keys []string) (out []map[string]Row, err error) {
	for _, key := range keys {
		all, err := rdb.HGetAll(ctx, key).Result()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		rows := map[string]Row{}
		for k, data := range all {
			var r Row
			if err := json.Unmarshal([]byte(data), &r); err != nil {
				return nil, fmt.Errorf("read %s: row %s: %w", key, k, err)
			}
			rows[k] = r
		}
		out = append(out, rows)
	}
	return out, nil
}

// Sources returns the events of a stream of so many partitions that is trimmed, by what was emitted for them.
func Sources(outputs [][]Entry, partitions int) [][]Entry {
	all := make([][]Entry, partitions)
	for _, list := range outputs {
		for _, o := range list {
			p, id, _ := strings.Cut(o.Mark.From, "-")
			n, err := strconv.Atoi(p)
			if err == nil && n < partitions && o.Mark.Of != nil && o.Mark.Nth == 0 {
				all[n] = append(all[n], Entry{Partition: n, ID: id, Mark: *o.Mark.Of})
			}
		}
	}
	for _, events := range all {
		slices.SortFunc(events, func(a, b Entry) int {
			return cmp.Or(cmp.Compare(timeOf(a.ID), timeOf(b.ID)), cmp.Compare(numberOf(a.ID), numberOf(b.ID)))
		})
	}
	return all
}

func numberOf(id string) int64 {
	_, seq, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(seq, 10, 64) // else 0
	return n
}
