package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/operate"
	"github.com/runnel-go/runnel/internal/store"
)

// A target is a stream that is there to be sent to.
type target struct {
	name string
	// send appends records in order and tells of each what became of it.
	send func(ctx context.Context, records []appview.JSONRecord) []appview.JSONSent
	// check returns why send would refuse a record.
	check func(appview.JSONRecord) error
	// arrays is set where the app's type of a record may be a JSON array.
	arrays bool
}

// target finds a stream: among the app's, or by its metadata.
func (s *session) target(ctx context.Context, c *cli.Context, name string) (*target, error) {
	if s.program.app == nil {
		if err := s.connect(ctx); err != nil {
			return nil, err
		}
		return s.untyped(ctx, name)
	}
	streams, err := s.reg.Streams()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(streams, func(st *appview.Stream) bool { return st.Name == name })
	if i < 0 {
		return nil, usagef(c, "app %s has no stream %q; %s", s.app.Name(), name, known(names(streams)))
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	// Here already, so that a contradiction is told once and not for every record.
	if _, err := s.client.EnsureMeta(ctx, name, streams[i].Meta); err != nil {
		return nil, err
	}
	sample, err := streams[i].Sample()
	arrays := err != nil || string(sample) == "null" || bytes.HasPrefix(sample, []byte("["))
	return &target{name, streams[i].SendJSON, streams[i].CheckJSON, arrays}, nil
}

// declared are the streams that the app declared; none without types.
func (s *session) declared() ([]*appview.Stream, error) {
	if s.program.app == nil {
		return nil, nil
	}
	return s.reg.Streams()
}

// reading makes the entries of a stream readable.
func (s *session) reading(ctx context.Context, stream string) (*operate.Reading, error) {
	meta, err := s.metadata(ctx, stream)
	if err != nil {
		return nil, err
	}
	declared, err := s.declared()
	if err != nil {
		return nil, err
	}
	return operate.NewReading(stream, meta, declared), nil
}

func names(streams []*appview.Stream) []string {
	var out []string
	for _, st := range streams {
		out = append(out, st.Name)
	}
	return out
}

func known(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}

// noStream says that a stream has no metadata, and why that may be.
func (s *session) noStream(ctx context.Context, name string) error {
	// This writes nothing without a number of partitions, and looks at the other
	// layout of keys.
	_, err := s.client.EnsureMeta(ctx, name, store.Meta{})
	var conflict *store.MetaConflictError
	switch {
	case !errors.As(err, &conflict):
	case conflict.Stored == string(runnel.LayoutStandalone) || conflict.Stored == string(runnel.LayoutCluster):
		return fmt.Errorf("%w: set RUNNEL_KEY_LAYOUT=%s", err, conflict.Stored)
	default: // they are being moved, or were
		return err
	}
	there, err := s.client.Streams(ctx)
	if err != nil {
		return err
	}
	return fmt.Errorf("app %s at %s has no stream %q; %s; a stream is there once its app has sent to it or run a worker",
		s.app.Name(), s.client.Addr(), name, known(there))
}
