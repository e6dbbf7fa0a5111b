package runnel

import (
	"context"
	"maps"
	"slices"
)

// A SendHook is called for each call of Send, SendAt, SendAfter and SendEvents of an
// app's streams that has records, before anything is encoded and with the caller's
// context. done, which may be nil, is called with the results of SendEvents; sent must
// not be changed.
//
// The goroutine that calls Send calls the hook, so each Send takes longer by the time
// that the hook takes. The hook is called concurrently. It can add headers, and change
// nothing else.
type SendHook func(ctx context.Context, s *Sending) (done func(sent []Sent, err error))

// Sending is a call of Send as a SendHook sees it. It is valid until the hook
// returns; it is not for concurrent use.
type Sending struct {
	Stream  string // name of the stream
	Records int    // at least 1

	headers []map[string]string // by index
}

// Headers returns the headers of record i, from 0: the caller's, and those that hooks
// have added. They must not be changed; nil for none.
func (s *Sending) Headers(i int) map[string]string { return s.headers[i] }

// AddHeaders adds headers to record i, from 0. A header that the record has
// already stays as it is. more is kept, for several records if need be, and must not
// be changed afterwards.
func (s *Sending) AddHeaders(i int, more map[string]string) {
	own := s.headers[i]
	if len(own) == 0 {
		s.headers[i] = more
		return
	}
	both := maps.Clone(more) // own may be the caller's
	maps.Copy(both, own)
	s.headers[i] = both
}

// hooked is send, or emit, with calls of the app's hooks.
func (s *Stream[T]) hooked(ctx context.Context, out []Outgoing[T], send func(context.Context, []Outgoing[T]) ([]Sent, error)) ([]Sent, error) {
	call := &Sending{Stream: s.name, Records: len(out), headers: make([]map[string]string, len(out))}
	for i := range out {
		call.headers[i] = out[i].Headers
	}
	hooks := s.app.opts.SendHooks
	dones := make([]func([]Sent, error), len(hooks))
	for i, hook := range hooks {
		dones[i] = hook(ctx, call)
	}
	out = slices.Clone(out) // the caller's
	for i := range out {
		out[i].Headers = call.headers[i]
	}
	sent, err := send(ctx, out)
	for _, done := range slices.Backward(dones) {
		if done != nil {
			done(sent, err)
		}
	}
	return sent, err
}
