package store

import "context"

// appendTables appends the keys of tables.
func appendTables(keys []string, tables []Table) []string {
	for _, t := range tables {
		keys = append(keys, t.Rows, t.Until)
	}
	return keys
}

// ClearTable removes the rows of a table in a partition, and returns how many there were. It returns ErrFenced if
// the claim does not hold the partition's lock; former owners are kept off by a Takeover before it. It may be
// repeated.
func (c TableStore) ClearTable(ctx context.Context, p Partition, t Claim, table Table) (rows int64, err error) {
	err = persist(ctx, func() error {
		var err error
		rows, err = clearScript.Run(ctx, c.NoRetry, []string{p.Lock, table.Rows, table.Until}, t.LockValue()).Int64()
		return c.NameWrongTypes(ctx, []string{table.Rows}, classify(err))
	})
	return rows, p.wrap("remove rows", err)
}

// DropTable removes a table from a stream's metadata, and reports whether it was there. Remove its rows
// first: only its name tells of them.
func (c TableStore) DropTable(ctx context.Context, stream, table string) (bool, error) {
	return Operator(c).amendMeta(ctx, stream, func(m *Meta) bool {
		_, there := m.Tables[table]
		delete(m.Tables, table)
		return there
	})
}
