package store

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

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

// Idle tells whether no event waits in a partition that its owner is not done with, and none is parked: then nothing will be
// appended any more before now, in ms since 1970 by the server's clock.
func (c Owner) Idle(ctx context.Context, p Partition, t Claim) (now int64, idle bool, err error) {
	now, err = idleScript.Run(ctx, c.NoRetry, []string{p.Log, p.Own, p.Retry}, t.LockValue()).Int64()
	return now, now > 0, p.wrap("look for events", classify(err))
}

// An Expiry is what ExpireRows is to look at.
type Expiry struct {
	Partition Partition
	Claim     Claim
	Tables    []Table
	Called    []Table // of whose ends a function is called: what these may see stays
}

// expiriesPerTrip is how many scripts of ExpireRows run in a row: each may remove 128 rows of each table.
const expiriesPerTrip = 32

// ExpireRows removes some rows of each partition that have ended for so long, where no event waits that would see them, and
// tells where there may be more. What it cannot do is left for another time: the error says why.
func (c Owner) ExpireRows(ctx context.Context, of []Expiry, since time.Duration) (more []bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Patience)
	defer cancel()
	calls, more := make([]*redisconn.Call, len(of)), make([]bool, len(of))
	for i, e := range of {
		keys := []string{e.Partition.Log, e.Partition.Own, e.Partition.Retry}
		for _, t := range e.Called {
			keys = append(keys, t.Until)
		}
		calls[i] = redisconn.ScriptCall(ctx, expireScript, appendTables(keys, e.Tables), e.Claim.LockValue(), milliseconds(since), len(e.Called))
	}
	redisconn.PipelineInTurns(ctx, c.NoRetry, calls, expiriesPerTrip)
	var errs []error
	for i, call := range calls {
		n, err := call.Reply.Int64()
		more[i] = n > 0
		if err = classify(err); err != nil && !errors.Is(err, ErrFenced) { // a heartbeat finds that out
			errs = append(errs, of[i].Partition.wrap("remove rows that have ended", err))
		}
	}
	return more, errors.Join(errs...)
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
