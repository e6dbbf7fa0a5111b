package keymigrate

import (
	"context"
	"errors"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

// emptyOutboxes brings all that is in outboxes to where it is for: under names without hash tags no owner would look for it. The error is a
// *store.OutputsLeftError if something takes none.
func (m *Mover) emptyOutboxes(ctx context.Context) (err error) {
	if m.source.from.Layout != keys.Cluster {
		return nil
	}
	own := m.o.Source // the client of the source knows the other names
	own.Keys = m.source.from
	c, err := store.Open(own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, s := range m.st.streams { // once these are marked they say that no one may append
		if _, _, err := c.KnowMeta(s.name, []byte(s.as(own.Keys.Layout))); err != nil {
			return err
		}
	}
	for _, s := range m.st.streams {
		for _, p := range s.meta.Atomic {
			if _, err := c.EmptyOutboxes(ctx, c.Partitions(s.name, p, s.meta.Numbers())); err != nil {
				return err
			}
		}
	}
	return nil
}
