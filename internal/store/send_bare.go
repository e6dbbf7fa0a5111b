package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// Records of so many bytes, on average, are large: they are appended without a script. Lua copies and hashes each byte of
// its strings, so a script takes Redis more than twice the time of XADD for 64 KB.
const largeRecord = 16 << 10

// largeCall is the least number of bytes for which the look for room, a round trip of its own, is worth it.
const largeCall = 256 << 10

// spareShare is the share of a partition that has to be free beside large records. So many of them may be under way
// at once, from all senders, before a partition can get longer than its metadata says: the look for room and what
// appends them are two round trips. Where there is less room they are appended by the script, which does both.
const spareShare = 4

// leastSpare is the least number of entries to keep free: partitions that are to be short keep to their length exactly.
const leastSpare = 1024

// large reports whether the records under way may be appended without a script.
func (p *part) large() bool {
	return p.weight >= largeRecord*p.n && p.IDs == nil && p.Due == nil && p.meta.Kind != KindTopic && !p.exact &&
		(p.meta.MaxLen <= 0 || p.meta.MaxLen/spareShare >= leastSpare)
}

// chooseBare chooses which of the records under way are appended without a script.
func (c Producer) chooseBare(ctx context.Context, parts []*part) {
	bytes := 0
	for _, p := range parts {
		if p.large() {
			bytes += p.weight
		}
	}
	may := bytes >= largeCall && c.transacts(ctx)
	for _, p := range parts {
		if p.bare = p.wide || may && p.large(); p.bare {
			p.weight = textWeight
		}
	}
}

// asked returns for how many records there has to be room.
func (p *part) asked() int64 {
	if p.bare && !p.wide && p.meta.MaxLen > 0 {
		return int64(p.n) + p.meta.MaxLen/spareShare
	}
	return int64(p.n)
}

// transacts reports whether a pipeline may hold transactions: the client is of one server, and that permits
// MULTI, EXEC and DISCARD. It asks the server the first time, without opening a transaction that it could not end; while
// the server does not answer it is false.
func (c Producer) transacts(ctx context.Context) bool {
	if known := c.transactions.Load(); known != nil || c.Clustered() {
		return known != nil && *known
	}
	may := true
	for _, names := range [][]string{{"EXEC", "DISCARD"}, {"MULTI", "DISCARD"}} {
		calls := []*redisconn.Call{redisconn.PlainCall(ctx, names[0]), redisconn.PlainCall(ctx, names[1])}
		redisconn.Pipeline(ctx, c.NoRetry, calls)
		for _, call := range calls {
			switch err := call.Reply.Err(); {
			case err == nil || redisconn.ReplyHas(err, "without MULTI"):
			case redisconn.ReplyHas(err, "NOPERM", "unknown command"):
				may = false
			default:
				return false
			}
		}
		if !may {
			break
		}
	}
	c.transactions.Store(&may)
	return may
}

// appendBare appends what is bare of some parts, for which there was room, in one round trip. It sets the errors of their next
// records. Several records are appended in a transaction, all or none: else one behind a record that is refused might be
// appended before it.
func (c Producer) appendBare(ctx context.Context, parts []*part, errs []error) {
	var calls []*redisconn.Call
	ends := make([]int, len(parts))
	for i, p := range parts {
		switch {
		case !p.bare || errs[i] != nil:
		case p.id(0) != "":
			errs[i] = fmt.Errorf("a record of more than %d fields cannot have an ID", fieldsPerCall/2)
		default:
			calls = append(calls, p.bareCalls(ctx)...)
		}
		ends[i] = len(calls)
	}
	if len(calls) == 0 {
		return
	}
	weak, begin := c.Durably(ctx, calls), 0
	for i, p := range parts {
		if ends[i] > begin {
			own := calls[begin:ends[i]]
			ids, err := bareIDs(own, p.n)
			if p.n > 1 && redisconn.ReplyHas(cmp.Or(own[1].Reply.Err(), own[len(own)-1].Reply.Err()), "NOPERM") {
				c.transactions.Store(nil) // to be asked again
			}
			if errs[i] = p.add(ids, weak); errs[i] == nil {
				errs[i] = err
			}
		}
		begin = ends[i]
	}
}

// bareCalls returns the commands that append the records under way. A write that changes nothing goes before a transaction:
// go-redis drops a connection, as one to a replica has to be, for the error of the first command, and MULTI has none there.
func (p *part) bareCalls(ctx context.Context) []*redisconn.Call {
	calls := make([]*redisconn.Call, 0, p.n+3)
	if p.n > 1 {
		calls = append(calls, redisconn.PlainCall(ctx, "PEXPIRE", p.log, 1, "GT"), redisconn.PlainCall(ctx, "MULTI"))
	}
	for _, r := range p.rest[:p.n] {
		calls = append(calls, redisconn.PlainCall(ctx, appendTexts([]any{"XADD", p.log, "*"}, r)...))
	}
	if p.n > 1 {
		calls = append(calls, redisconn.PlainCall(ctx, "EXEC"))
	}
	return calls
}

// bareIDs returns the IDs of what n records' calls have appended, and the error of the record behind them.
func bareIDs(calls []*redisconn.Call, n int) (ids []string, err error) {
	appends := calls
	if n > 1 {
		appends = calls[2 : 2+n]
	}
	if n == 1 || redisconn.IsReply(calls[1].Reply.Err()) { // no transaction: the right to it was taken away
		for _, c := range appends {
			id, err := c.Reply.Text()
			if err != nil {
				return ids, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	}
	list, err := calls[len(calls)-1].Reply.Slice()
	if err != nil {
		for _, c := range appends {
			if refused := c.Reply.Err(); redisconn.IsReply(refused) { // why the transaction was discarded
				return nil, refused
			}
		}
		return nil, err
	}
	for _, v := range list {
		switch v := v.(type) {
		case string:
			ids = append(ids, v)
		case error: // as when a partition runs out of IDs: then those behind it have none either
			return ids, v
		}
	}
	if len(ids) != n {
		return nil, fmt.Errorf("unexpected reply %v", list)
	}
	return ids, nil
}
