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

// What the other server is, for a move.
type standing int

const (
	standsEmpty   standing = iota // it has nothing of the app
	standsOurs                    // this move has begun to copy
	standsStale                   // an earlier move from the same server had, and was taken back
	standsArrived                 // this move is complete there
)

// lookAtTarget says why the other server cannot get the keys.
func (m *Mover) lookAtTarget(ctx context.Context) error {
	if m.target == nil {
		return nil
	}
	if err := m.target.Check(ctx); err != nil {
		return err
	}
	own, err := runID(ctx, m.rdb)
	if err != nil {
		return err
	}
	nodes, err := m.target.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		other, err := runID(ctx, n.Redis)
		if err != nil {
			return err
		}
		if own != "" && own == other {
			return fmt.Errorf("--to names the redis that has the keys, %s: leave it out to rename them there", m.source.Addr())
		}
	}
	_, err = m.stand(ctx)
	return err
}

// runID identifies a server, "" where it does not let us ask.
func runID(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil && !isReply(err) {
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

// stand says what the other server is for this move; an error if it has something of
// the app that did not come from here.
func (m *Mover) stand(ctx context.Context) (standing, error) {
	mark, err := m.targetMark(ctx)
	switch {
	case err != nil:
		return 0, err
	case mark.State == store.MarkArrived && mark.ID == m.st.mark.ID:
		return standsArrived, nil
	case mark.State == store.MarkClaimed && mark.ID == m.st.mark.ID:
		return standsOurs, nil
	case mark.State == store.MarkClaimed && mark.Source == m.source.Addr():
		return standsStale, nil
	case mark.State == store.MarkClaimed:
		return 0, fmt.Errorf("the redis at %s is getting the keys of this app from the one at %s", m.Target(), mark.Source)
	}
	foreign, err := m.foreign(ctx)
	if err == nil && foreign != "" {
		err = fmt.Errorf("the redis at %s has keys of this app that did not come from here, such as %s: see what they are, and delete them if nobody needs them", m.Target(), foreign)
	}
	return standsEmpty, err
}

// targetMark is what is marked on the other server.
func (m *Mover) targetMark(ctx context.Context) (store.Mark, error) {
	stored, err := m.target.Redis().HGet(ctx, m.to.Streams(), store.MarkField).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return store.Mark{}, fmt.Errorf("redis at %s: %s: %w", m.Target(), m.to.Streams(), err)
	}
	return store.ParseMark(stored)
}

// foreign is a key of the app on the other server, "" for none.
func (m *Mover) foreign(ctx context.Context) (string, error) {
	if n, err := m.target.Redis().Exists(ctx, m.from.Streams()).Result(); err != nil || n > 0 {
		return m.from.Streams(), err
	}
	found := ""
	err := m.onTarget(ctx, func(e entry) {
		if e.Names != probeName { // an interrupted move may have left it a moment ago
			found = e.key
		}
	})
	return found, err
}

// onTarget tells of all keys that the app has on the other server.
func (m *Mover) onTarget(ctx context.Context, tell func(entry)) error {
	nodes, err := m.target.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		err := m.scan(ctx, n.Redis, m.to, func(part []entry) error {
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

// claim has everybody refused on the other server until all is there.
func (m *Mover) claim(ctx context.Context) error {
	if m.target == nil {
		return nil
	}
	is, err := m.stand(ctx)
	if err != nil || is == standsArrived || is == standsOurs {
		return err
	}
	if err := m.readable(ctx); err != nil {
		return err
	}
	rdb := m.target.Redis()
	mark := store.Mark{State: store.MarkClaimed, ID: m.st.mark.ID, To: m.To(), Source: m.source.Addr(), At: time.Now().UnixMilli()}
	if is == standsEmpty {
		n, err := rdb.HSetNX(ctx, m.to.Streams(), store.MarkField, mark.Encode()).Result()
		if err == nil && !n { // somebody was faster, or this was repeated
			is, err = m.stand(ctx)
		}
		if err != nil || is != standsEmpty {
			return err
		}
		return nil
	}
	// What is there are copies that were never used, of what has changed since.
	var stale []string
	if err := m.onTarget(ctx, func(e entry) { stale = append(stale, e.key) }); err != nil {
		return err
	}
	for _, key := range stale {
		if key == m.to.Streams() {
			continue
		}
		if err := rdb.Unlink(ctx, key).Err(); err != nil {
			return fmt.Errorf("redis at %s: delete %s: %w", m.Target(), key, err)
		}
	}
	return rdb.HSet(ctx, m.to.Streams(), store.MarkField, mark.Encode()).Err()
}

// readable finds out, before much is done, whether the other server understands what
// this one dumps.
func (m *Mover) readable(ctx context.Context) error {
	data, err := m.rdb.Dump(ctx, m.from.Streams()).Result()
	if err != nil {
		return fmt.Errorf("dump %s: %w", m.from.Streams(), err)
	}
	probe := m.to.Meta(probeName)
	if err := m.target.Redis().RestoreReplace(ctx, probe, time.Second, data).Err(); err != nil {
		return m.restoreError(ctx, probe, err)
	}
	return m.target.Redis().Del(ctx, probe).Err()
}

// probeName is the name of no stream.
const probeName = "@probe"

func (m *Mover) restoreError(ctx context.Context, key string, err error) error {
	if isReply(err) && strings.Contains(err.Error(), "payload version or checksum") {
		return fmt.Errorf("the redis at %s%s cannot read what the one at %s%s dumps: it must not be the older of the two",
			m.Target(), version(ctx, m.target.Redis()), m.source.Addr(), version(ctx, m.rdb))
	}
	return fmt.Errorf("redis at %s: restore %s: %w", m.Target(), key, err)
}

func version(ctx context.Context, rdb redis.UniversalClient) string {
	if v := redisconn.ParseVersion(rdb.Info(ctx, "server").Val()).String(); v != "" {
		return " (" + v + ")"
	}
	return ""
}

// arrive has the streams on the other server, where everything has been copied to.
func (m *Mover) arrive(ctx context.Context) error {
	if is, err := m.stand(ctx); err != nil || is == standsArrived {
		return err
	}
	mark := store.Mark{State: store.MarkArrived, ID: m.st.mark.ID, To: m.To(), Source: m.source.Addr(), At: m.st.mark.At}
	_, err := m.target.Redis().TxPipelined(ctx, func(tx redis.Pipeliner) error {
		for _, s := range m.st.streams {
			tx.Set(ctx, m.to.Meta(s.name), s.as(m.To()), 0)
			tx.HSet(ctx, m.to.Streams(), s.name, "1")
		}
		tx.HSet(ctx, m.to.Streams(), store.MarkField, mark.Encode())
		return nil
	})
	if err != nil {
		return fmt.Errorf("redis at %s: write the metadata: %w", m.Target(), err)
	}
	return nil
}
