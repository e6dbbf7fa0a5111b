package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/records"
	"github.com/runnel-go/runnel/internal/store"
)

// look returns the state of what the argument names: the app, a stream or a processor. count is as
// for inspect.App.
func (s *session) look(ctx context.Context, count int64) (*inspect.AppState, error) {
	state, err := inspect.App(ctx, s.client, s.stream, count)
	if err != nil {
		return nil, err
	}
	if state.Evictions, err = inspect.Evictions(ctx, s.client); err != nil {
		return nil, err
	}
	i, err := s.find(ctx, state)
	if err == nil && i >= 0 {
		only := &state.Streams[0]
		only.Processors = only.Processors[i : i+1]
	}
	return state, err
}

// find returns the place of the processor that the argument names, -1 if it names none, in the
// state of its stream.
func (s *session) find(ctx context.Context, state *inspect.AppState) (int, error) {
	if s.stream != "" && len(state.Streams) == 0 {
		return 0, s.noStream(ctx, s.stream)
	}
	if s.processor == "" {
		return -1, nil
	}
	var there []string
	for i, p := range state.Streams[0].Processors {
		if p.Processor == s.processor {
			return i, nil
		}
		there = append(there, p.Processor)
	}
	return 0, &admin.NotFoundError{Stream: s.stream, Processor: s.processor, There: there}
}

// A target is a stream to send to.
type target struct {
	name string
	// send appends records in order and returns the outcome of each.
	send func(ctx context.Context, records []appview.JSONRecord) []appview.JSONSent
	// check returns why send would refuse a record.
	check func(appview.JSONRecord) error
	// arrays is set where the app's type of a record may be a JSON array.
	arrays bool
}

// target finds a stream: among the app's, or by its metadata.
func (s *session) target(ctx context.Context, c *call, name string) (*target, error) {
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
		return nil, usagef(c, "app %s has no stream %q; it has %s", s.app.Name(), name, namesOf(streams))
	}
	if err := streams[i].Meta.CheckSend(name); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	// Before the first record, so that a contradiction is reported once.
	if _, err := s.client.EnsureMeta(ctx, name, streams[i].Meta); err != nil {
		return nil, err
	}
	sample, err := streams[i].Sample()
	arrays := err != nil || string(sample) == "null" || bytes.HasPrefix(sample, []byte("["))
	return &target{name, streams[i].SendJSON, streams[i].CheckJSON, arrays}, nil
}

func namesOf(streams []*appview.Stream) string {
	names := []string{}
	for _, st := range streams {
		names = append(names, st.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// decoder decodes the entries of a stream, by the app's types or by its metadata.
func (s *session) decoder(ctx context.Context, stream string) (*records.Decoder, error) {
	meta, err := s.metadata(ctx, stream)
	if err != nil || s.program.app == nil {
		return records.NewDecoder(stream, meta, nil), err
	}
	declared, err := s.reg.Streams()
	if err != nil {
		return nil, err
	}
	return records.NewDecoder(stream, meta, declared), nil
}

// metadata is a stream's, or an error that names the streams there are.
func (s *session) metadata(ctx context.Context, stream string) (store.Meta, error) {
	m, ok, err := s.client.LoadMeta(ctx, stream)
	if err == nil && !ok {
		err = s.noStream(ctx, stream)
	}
	return m, err
}

// noStream is the error for a stream that does not exist, with the likely reason.
func (s *session) noStream(ctx context.Context, name string) error {
	_, err := s.admin.Stream(ctx, name)
	if err == nil { // it exists now
		err = fmt.Errorf("stream %s was not there a moment ago", name)
	}
	return err
}
