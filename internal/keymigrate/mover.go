package keymigrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// patience is how long one command may take: a key may be large.
const patience = 10 * time.Minute

// Options say what is moved.
type Options struct {
	App    string
	Source redisconn.Options // the server that has the keys; Keys are not used
	Target string            // URL of the server that gets them, with the files of Source for TLS; "" for the same
	Back   bool              // to the standalone names again
	Delete bool              // on the server that had them, once they are on the other one
	// Report is called often, with how many keys of how many are done; of is 0 if unknown.
	Report func(step string, done, of int)
}

// A Mover moves the keys of one app. It is for one goroutine.
type Mover struct {
	o      Options
	source *source
	target *target // nil: the same server

	st      *state
	planned *Plan           // what was counted, once
	fenced  map[string]bool // keys that the metadata name and that have a fence now
}

// ErrNothing is returned if the app has no keys to be moved.
var ErrNothing = errors.New("nothing to move")

// Open returns a Mover without any I/O.
func Open(o Options) (*Mover, error) {
	so := &source{from: keys.Keys{App: o.App, Layout: keys.Standalone}, to: keys.Keys{App: o.App, Layout: keys.Cluster}}
	if o.Back {
		so.from, so.to = so.to, so.from
	}
	m := &Mover{o: o, source: so, fenced: map[string]bool{}}
	if m.o.Report == nil {
		m.o.Report = func(string, int, int) {}
	}
	if redisconn.IsCluster(o.Source) {
		return nil, errors.New("this is a Redis Cluster, where keys have the cluster names: say with --redis-url where the standalone ones are, and with --to where they go")
	}
	var err error
	own := o.Source
	own.Keys, own.Patience = keys.Keys{App: o.App, Layout: keys.Standalone}, patience
	if so.client, err = store.Open(own); err != nil {
		return nil, err
	}
	so.rdb = so.client.Redis()
	if o.Target == "" {
		return m, nil
	}
	there := redisconn.Options{URL: o.Target, Keys: so.to, Patience: patience}
	if strings.HasPrefix(o.Target, "rediss") {
		there.TLS = o.Source.TLS
	}
	client, err := store.Open(there)
	if err != nil {
		return nil, errors.Join(err, so.client.Close())
	}
	m.target = &target{client, so}
	return m, nil
}

// Close closes the connections.
func (m *Mover) Close() error {
	if m.target == nil {
		return m.source.client.Close()
	}
	return errors.Join(m.source.client.Close(), m.target.client.Close())
}

// To returns the layout whose names the keys get.
func (m *Mover) To() string { return m.source.to.Layout }

// Target returns the address of the server that gets the keys, "" for the same.
func (m *Mover) Target() string { return m.target.addr() }

// A Refusal is why nothing is moved now: a worker runs for the app, or a new name is taken.
type Refusal struct{ Reason string }

// Error returns the reason, and what to do.
func (r *Refusal) Error() string { return r.Reason }

// Plan returns what Run would move, and changes nothing. It returns ErrNothing if nothing is left.
func (m *Mover) Plan(ctx context.Context) (*Plan, error) {
	p, err := m.plan(ctx)
	if err != nil {
		return nil, fmt.Errorf("app %s: %w", m.o.App, err)
	}
	return p, nil
}

func (m *Mover) plan(ctx context.Context) (*Plan, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	if m.away() && !m.o.Delete {
		return nil, ErrNothing
	}
	p, err := m.planned, error(nil)
	if p == nil {
		if p, err = m.count(ctx); err != nil {
			return nil, err
		}
		m.planned = p
	}
	p.Refused = nil
	p.Resumed = m.st.mark.State == store.MarkMoving
	if p.Keys() == 0 && !p.Resumed {
		return nil, ErrNothing
	}
	if err = m.source.alive(ctx, m.st.streams); err == nil && !p.Resumed && !m.away() {
		err = m.source.free(ctx, m.st.mark)
	}
	if err != nil && !errors.As(err, &p.Refused) {
		return nil, err
	}
	return p, m.target.check(ctx, m.st.mark)
}

// begin reads what there is, and refuses what makes no sense.
func (m *Mover) begin(ctx context.Context) (err error) {
	if m.st, err = m.source.read(ctx); err != nil {
		return err
	}
	mark := m.st.mark
	if mark.State == store.MarkClaimed {
		return fmt.Errorf("its keys are being copied to here from the redis at %s: go on there", mark.Source)
	}
	if m.o.Back {
		return nil
	}
	there, moving := m.there(ctx), mark.State == store.MarkMoving
	switch {
	case m.away() && !there:
		return fmt.Errorf("its keys were moved to the redis at %s already", mark.Target)
	case m.away(), moving && mark.To == m.To() && there:
		return nil
	case moving && mark.To != m.To():
		return errors.New("its keys are on their way back to the standalone names: say --back to end that")
	case moving && mark.Target == "":
		return errors.New("a move to the cluster names on this server was begun: end it without --to, or go --back first")
	case moving:
		return fmt.Errorf("a move to the redis at %s was begun: say --to with its URL, or go --back first", mark.Target)
	case m.target != nil && m.st.has(m.source.to) && !m.st.has(m.source.from):
		return errors.New("its keys have the cluster names already, under which processes may write at any time: go --back first, then say --to")
	}
	return nil
}

// there reports whether the marked move is one to this target: by its address or, if that has
// changed, by the mark there. A target that does not answer is not the one.
func (m *Mover) there(ctx context.Context) bool {
	mark := m.st.mark
	if mark.Target == m.Target() || m.target == nil || mark.Target == "" {
		return mark.Target == m.Target()
	}
	other, err := m.target.mark(ctx)
	return err == nil && other.ID == mark.ID && other.State != store.MarkMoving
}

// away reports whether everything is on the other server already.
func (m *Mover) away() bool {
	return m.st.mark.State == store.MarkMoved && m.st.mark.Target != "" && !m.o.Back
}

// Run moves everything and returns what it found to be moved, also with an error; after Plan it
// returns that one. It blocks. If ctx ends or anything fails, it stops, and another Run goes on.
func (m *Mover) Run(ctx context.Context) (*Plan, error) {
	p, err := m.plan(ctx)
	if err != nil {
		return nil, fmt.Errorf("app %s: %w", m.o.App, err)
	}
	if p.Refused != nil {
		return nil, fmt.Errorf("app %s: %w; nothing was changed", m.o.App, p.Refused)
	}
	if err := m.emptyOutboxes(ctx); errors.As(err, new(*store.OutputsLeftError)) {
		return nil, fmt.Errorf("app %s: %w; no key was renamed: mend that, or run its workers until nothing waits in outboxes", m.o.App, err)
	} else if err != nil {
		return nil, fmt.Errorf("app %s: %w", m.o.App, err)
	}
	if err := m.move(ctx); err != nil {
		return p, fmt.Errorf("app %s: %w; until the move is complete its workers and producers are refused: run this again, or with --back", m.o.App, err)
	}
	return p, nil
}

func (m *Mover) move(ctx context.Context) error {
	if m.away() {
		return m.afterwards(ctx)
	}
	for {
		if err := m.mark(ctx); err != nil {
			return err
		}
		if err := m.source.alive(ctx, m.st.streams); err != nil { // it may have come before the mark
			return err
		}
		if err := m.emptyOutboxes(ctx); err != nil { // likewise
			return err
		}
		if err := m.target.claim(ctx, m.st.mark); err != nil {
			return err
		}
		if err := m.renamer().rename(ctx); err != nil {
			return err
		}
		if err := m.target.copy(ctx, m.st.mark, m.o.Report); err != nil {
			return err
		}
		if err := m.source.alive(ctx, m.st.streams); err != nil {
			return err
		}
		done, err := m.finish(ctx)
		if err != nil {
			return err
		}
		if done {
			return m.afterwards(ctx)
		}
		if m.st, err = m.source.read(ctx); err != nil { // there is another stream
			return err
		}
	}
}

// renamer returns a renamer by what is known now.
func (m *Mover) renamer() *renamer { return &renamer{m.source, m.st, m.fenced, m.o.Report} }

// afterwards deletes what was copied, if asked to.
func (m *Mover) afterwards(ctx context.Context) error {
	if m.target == nil || !m.o.Delete {
		return nil
	}
	return m.deleteCopied(ctx)
}
