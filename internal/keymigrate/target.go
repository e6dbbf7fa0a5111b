package keymigrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A target is the other server, which gets the keys once they have their new names. If it is nil,
// there is none, and check, claim and copy do nothing.
type target struct {
	client *store.Client
	source *source
}

// addr returns the address of the server, "" for none.
func (t *target) addr() string {
	if t == nil {
		return ""
	}
	return t.client.Addr()
}

// What the other server is, for a move.
type standing int

const (
	standsEmpty   standing = iota // it has nothing of the app
	standsOurs                    // this move has begun to copy
	standsStale                   // an earlier move from the same server had, and was taken back
	standsArrived                 // this move is complete there
)

// check returns an error if the target cannot get the keys. ours is the source's mark of this move.
func (t *target) check(ctx context.Context, ours store.Mark) error {
	if t == nil {
		return nil
	}
	if err := t.client.Check(ctx); err != nil {
		return err
	}
	own, err := runID(ctx, t.source.rdb)
	if err != nil {
		return err
	}
	nodes, err := t.client.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		other, err := runID(ctx, n.Redis)
		if err != nil {
			return err
		}
		if own != "" && own == other {
			return fmt.Errorf("--to names the redis that has the keys, %s: leave it out to rename them there", t.source.client.Addr())
		}
	}
	_, err = t.stand(ctx, ours)
	return err
}

// runID identifies a server, "" where it does not let us ask.
func runID(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil && !redisconn.IsReply(err) {
		return "", err
	}
	return field(info, "run_id"), nil
}

func field(info, name string) string {
	for line := range strings.Lines(info) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key == name {
			return value
		}
	}
	return ""
}

// stand returns what the other server is for this move, or an error if it has something of the app
// that did not come from here.
func (t *target) stand(ctx context.Context, ours store.Mark) (standing, error) {
	mark, err := t.mark(ctx)
	switch {
	case err != nil:
		return 0, err
	case mark.State == store.MarkArrived && mark.ID == ours.ID:
		return standsArrived, nil
	case mark.State == store.MarkClaimed && mark.ID == ours.ID:
		return standsOurs, nil
	case mark.State == store.MarkClaimed && mark.Source == t.source.client.Addr():
		return standsStale, nil
	case mark.State == store.MarkClaimed:
		return 0, fmt.Errorf("the redis at %s is getting the keys of this app from the one at %s", t.addr(), mark.Source)
	}
	foreign, err := t.foreign(ctx)
	if err == nil && foreign != "" {
		err = fmt.Errorf("the redis at %s has keys of this app that did not come from here, such as %s: see what they are, and delete them if they are not needed", t.addr(), foreign)
	}
	return standsEmpty, err
}

// mark returns the mark on the other server.
func (t *target) mark(ctx context.Context) (store.Mark, error) {
	stored, err := t.client.Redis().HGet(ctx, t.source.to.Streams(), store.MarkField).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return store.Mark{}, fmt.Errorf("redis at %s: %s: %w", t.addr(), t.source.to.Streams(), err)
	}
	return store.ParseMark(stored)
}

// foreign returns a key of the app on the other server, "" for none.
func (t *target) foreign(ctx context.Context) (string, error) {
	if n, err := t.client.Redis().Exists(ctx, t.source.from.Streams()).Result(); err != nil || n > 0 {
		return t.source.from.Streams(), err
	}
	found := ""
	err := t.each(ctx, func(e entry) {
		if e.Names != probeName { // an interrupted move may have left it a moment ago
			found = e.key
		}
	})
	return found, err
}

// each passes all keys that the app has on the other server to tell.
func (t *target) each(ctx context.Context, tell func(entry)) error {
	nodes, err := t.client.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		err := scan(ctx, n.Redis, t.source.to, func(part []entry) error {
			for _, e := range part {
				tell(e)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("redis at %s: %w", n.Addr, err)
		}
	}
	return nil
}

// claim has every process refused on the other server until all is there.
func (t *target) claim(ctx context.Context, ours store.Mark) error {
	if t == nil {
		return nil
	}
	is, err := t.stand(ctx, ours)
	if err != nil || is == standsArrived || is == standsOurs {
		return err
	}
	if err := t.readable(ctx); err != nil {
		return err
	}
	rdb := t.client.Redis()
	mark := store.Mark{State: store.MarkClaimed, ID: ours.ID, To: t.source.to.Layout, Source: t.source.client.Addr(), At: time.Now().UnixMilli()}
	if is == standsEmpty {
		n, err := rdb.HSetNX(ctx, t.source.to.Streams(), store.MarkField, mark.Encode()).Result()
		if err == nil && !n { // another process was faster, or this was repeated
			_, err = t.stand(ctx, ours)
		}
		return err
	}
	// The copies there were never used, and their keys have changed since.
	var stale []string
	if err := t.each(ctx, func(e entry) { stale = append(stale, e.key) }); err != nil {
		return err
	}
	for _, key := range stale {
		if key == t.source.to.Streams() {
			continue
		}
		if err := rdb.Unlink(ctx, key).Err(); err != nil {
			return fmt.Errorf("redis at %s: delete %s: %w", t.addr(), key, err)
		}
	}
	return rdb.HSet(ctx, t.source.to.Streams(), store.MarkField, mark.Encode()).Err()
}

// readable finds out early whether the other server understands what this one dumps.
func (t *target) readable(ctx context.Context) error {
	data, err := t.source.rdb.Dump(ctx, t.source.from.Streams()).Result()
	if err != nil {
		return fmt.Errorf("dump %s: %w", t.source.from.Streams(), err)
	}
	probe := t.source.to.Meta(probeName)
	if err := t.client.Redis().RestoreReplace(ctx, probe, time.Second, data).Err(); err != nil {
		return t.restoreError(ctx, probe, err)
	}
	return t.client.Redis().Del(ctx, probe).Err()
}

// probeName is the name of no stream.
const probeName = "@probe"

// restoreError explains why a key was not restored on the target.
func (t *target) restoreError(ctx context.Context, key string, err error) error {
	if redisconn.IsReply(err) && strings.Contains(err.Error(), "payload version or checksum") {
		return fmt.Errorf("the redis at %s%s cannot read what the one at %s%s dumps: it must not be the older of the two",
			t.addr(), version(ctx, t.client.Redis()), t.source.client.Addr(), version(ctx, t.source.rdb))
	}
	return fmt.Errorf("redis at %s: restore %s: %w", t.addr(), key, err)
}

func version(ctx context.Context, rdb redis.UniversalClient) string {
	if v := redisconn.ParseVersion(rdb.Info(ctx, "server").Val()).String(); v != "" {
		return " (" + v + ")"
	}
	return ""
}

// arrive puts the streams on the other server, to which everything has been copied.
func (t *target) arrive(ctx context.Context, st *state) error {
	if is, err := t.stand(ctx, st.mark); err != nil || is == standsArrived {
		return err
	}
	mark := store.Mark{State: store.MarkArrived, ID: st.mark.ID, To: t.source.to.Layout, Source: t.source.client.Addr(), At: st.mark.At}
	_, err := t.client.Redis().TxPipelined(ctx, func(tx redis.Pipeliner) error {
		for _, s := range st.streams {
			tx.Set(ctx, t.source.to.Meta(s.name), s.as(t.source.to.Layout), 0)
			tx.HSet(ctx, t.source.to.Streams(), s.name, "1")
		}
		tx.HSet(ctx, t.source.to.Streams(), store.MarkField, mark.Encode())
		return nil
	})
	if err != nil {
		return fmt.Errorf("redis at %s: write the metadata: %w", t.addr(), err)
	}
	return nil
}
