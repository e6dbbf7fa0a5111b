package rstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// blamed names the keys of a partition that hold a wrong type, which Redis' error does
// not, and the ownership hash whose contents are garbled. Any other error stays as it is, and
// so does one whose key is not found.
func (c *Client) blamed(ctx context.Context, p Place, err error) error {
	if _, found, ok := strings.Cut(errorText(err), "GARBLED "); ok && isReply(err) {
		field, value, _ := strings.Cut(found, " ")
		return fmt.Errorf("%s: %w: field %s is %q: DEL that key: the next owner finds the position by the consumer group; its quarantine and its count of lost events end with it", p.Own, ErrGarbled, field, value)
	}
	if !errors.Is(err, ErrWrongType) {
		return err
	}
	suspects := []struct {
		key string
		ask []any // with what refuses any other type than the right one, and changes nothing
	}{
		{p.Log, []any{"XLEN", p.Log}},
		{p.Lock, []any{"GET", p.Lock}},
		{p.Own, []any{"HLEN", p.Own}},
		{p.Parked, []any{"HLEN", p.Parked}},
		{p.Retry, []any{"HLEN", p.Retry}},
		{p.Dead, []any{"XLEN", p.Dead}},
		{p.Due, []any{"ZCOUNT", p.Due, 0, 0}},
	}
	calls := make([]*call, len(suspects))
	for n, s := range suspects {
		calls[n] = plainCall(ctx, s.ask...)
	}
	pipeline(ctx, c.ordinary, calls)
	var wrong []string
	for n, s := range suspects {
		if replyHas(calls[n].reply.Err(), "WRONGTYPE") {
			wrong = append(wrong, s.key)
		}
	}
	if len(wrong) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w: look what it is, then delete or rename it", strings.Join(wrong, ", "), err)
}

// failed is an error of an operation on a partition, with the keys that are to blame.
func (c *Client) failed(ctx context.Context, p Place, op string, err error) error {
	return p.wrap(op, c.blamed(ctx, p, err))
}

// errorText is the text of an error, "" for none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
