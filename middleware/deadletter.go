package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
)

// Dead is a dead letter: an event that was moved out of its stream, with the error.
type Dead struct {
	Stream    string            `json:"stream"`
	Processor string            `json:"processor"`
	Partition int               `json:"partition"`
	ID        string            `json:"id"` // the event's entry ID
	Key       string            `json:"key"`
	Attempt   int               `json:"attempt"` // the number of the last one
	Error     string            `json:"error"`
	Fields    map[string][]byte `json:"fields"` // as they were encoded
	Headers   map[string]string `json:"headers,omitempty"`
	FailedAt  time.Time         `json:"failed_at"`
}

// DeadLetters declares the stream "<name>.dead" for the dead letters of a
// stream, in JSON, with the keys that the events had. It panics as NewStream
// does.
func DeadLetters[T any](s *runnel.Stream[T]) *runnel.Stream[Dead] {
	return runnel.NewStream(s.App(), s.Name()+".dead", func(d Dead) string { return d.Key }, &runnel.StreamOptions{Codec: codec.JSON})
}

// DeadLetter sends the failed events, those of Batch.Failed, to dead; then they are
// acked. If they cannot be sent, both errors are joined and go to the policy, so that the
// events are not acked unless the policy is Ignore. After a failed send some letters may
// have been appended, and be appended again.
//
// Use it for a typed stream of dead letters that other processors can process. The dead
// letters of runnel.Retry need no code, are moved in one step with the ack, and are
// managed from the command line. Use only one of the two: with both, DeadLetter gets
// every failed attempt.
//
// DeadLetter passes on errors of an ownership that has ended, and runnel.ErrNotConsumed.
func DeadLetter(dead *runnel.Stream[Dead]) runnel.Middleware {
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			err := next(ctx, b)
			if err == nil || ended(ctx) || errors.Is(err, runnel.ErrNotConsumed) {
				return err
			}
			var letters []Dead
			for _, e := range b.Failed(err) {
				letters = append(letters, letter(b, e, err))
			}
			if sendErr := dead.Send(ctx, letters...); sendErr != nil {
				return errors.Join(err, fmt.Errorf("middleware.DeadLetter: %w", sendErr))
			}
			return nil
		}
	}
}

func letter(b *runnel.Batch, e *runnel.Event, err error) Dead {
	fields := map[string][]byte{}
	for name, value := range e.Fields() {
		fields[name] = []byte(value)
	}
	return Dead{
		Stream: b.Stream, Processor: b.Processor, Partition: b.Partition, ID: e.ID, Key: e.Key(), Attempt: e.Attempt,
		Error: err.Error(), Fields: fields, Headers: e.Headers(), FailedAt: time.Now().UTC(),
	}
}
