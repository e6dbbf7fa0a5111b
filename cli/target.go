package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/records"
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

// decoder makes the entries of a stream readable.
func (s *session) decoder(ctx context.Context, stream string) (*records.Decoder, error) {
	meta, err := s.metadata(ctx, stream)
	if err != nil {
		return nil, err
	}
	declared, err := s.declared()
	if err != nil {
		return nil, err
	}
	return records.NewDecoder(stream, meta, declared), nil
}

// metadata is a stream's, or an error that says what there is.
func (s *session) metadata(ctx context.Context, stream string) (store.Meta, error) {
	m, ok, err := s.client.LoadMeta(ctx, stream)
	if err == nil && !ok {
		err = s.noStream(ctx, stream)
	}
	return m, err
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

// noStream is an error that says that there is no such stream, and why that may be.
func (s *session) noStream(ctx context.Context, name string) error {
	_, err := s.admin.Stream(ctx, name)
	if err == nil { // there is now
		err = fmt.Errorf("stream %s was not there a moment ago", name)
	}
	return err
}
