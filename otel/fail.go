package runnelotel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/runnel-go/runnel"
)

func fail(ctx context.Context, span trace.Span, err error) {
	var p *runnel.PanicError
	if errors.As(err, &p) {
		span.AddEvent(semconv.ExceptionEventName, trace.WithAttributes(
			semconv.ExceptionType(fmt.Sprintf("%T", p.Value)), semconv.ExceptionMessage(fmt.Sprint(p.Value)), semconv.ExceptionStacktrace(string(p.Stack))))
		panicked(span, fmt.Sprintf(": %v", p.Value)) // without the stack in err's text
		return
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType(ctx, err)))
	span.SetStatus(codes.Error, err.Error())
}

func panicked(span trace.Span, with string) {
	span.SetAttributes(semconv.ErrorTypeKey.String("panic"))
	span.SetStatus(codes.Error, "panic"+with)
}

// kinds are the errors with a name. The end of an ownership comes before the errors that it causes.
var kinds = []struct {
	err  error
	name string
}{
	{runnel.ErrLost, "lost"},
	{runnel.ErrReleased, "released"},
	{runnel.ErrShutdown, "shutdown"},
	{runnel.ErrTimeout, "timeout"},
	{runnel.ErrNotConsumed, "not_consumed"},
	{runnel.ErrStreamFull, "stream_full"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
}

// errorType returns the attribute error.type, which has few values.
func errorType(ctx context.Context, err error) string {
	var decode *runnel.DecodeError
	if errors.As(err, &decode) {
		return "decode"
	}
	cause := context.Cause(ctx)
	for _, k := range kinds {
		if errors.Is(err, k.err) || errors.Is(err, context.Canceled) && errors.Is(cause, k.err) {
			return k.name
		}
	}
	var se *runnel.SendError
	if errors.As(err, &se) {
		err = se.Failed[0].Err
	}
	return semconv.ErrorType(unwrapped(err)).Value.AsString()
}

// unwrapped returns err without wrappers of fmt and of Runnel, which only add where it happened or
// how to handle it.
func unwrapped(err error) error {
	for {
		typ := reflect.TypeOf(err)
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		inner, own := errors.Unwrap(err), reflect.TypeFor[runnel.Event]().PkgPath()
		if path := typ.PkgPath(); inner == nil || path != "fmt" && path != own && !strings.HasPrefix(path, own+"/internal/") {
			return err
		}
		err = inner
	}
}
