package rstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// blamed names the keys of a partition that hold a wrong type, which Redis' error does
// not. Any other error stays as it is, and so does one whose key is not found.
func (c *Client) blamed(ctx context.Context, p Place, err error) error {
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
