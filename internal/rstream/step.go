package rstream

import (
	"context"
	"fmt"
)

// Step returns the position that is n entries behind another one in a partition, or
// before it where n is negative; where there are not so many, the last one or "0-0".
// It counts in pages, one for each round trip; the entries stay on the server.
func (c *Client) Step(ctx context.Context, p Place, from string, n int64) (to string, err error) {
	direction := "forward"
	if n < 0 {
		direction, n = "back", -n
	}
	for to = from; n > 0; {
		page := min(n, countPage)
		reply, err := stepScript.Run(ctx, c.ordinary, []string{p.Log}, to, page, direction).Slice()
		if err != nil {
			return "", p.wrap("step", sorted(err))
		}
		next, ok := reply[0].(string)
		steps, counted := reply[1].(int64)
		if !ok || !counted {
			return "", p.wrap("step", fmt.Errorf("unexpected reply %v", reply))
		}
		if to, n = next, n-steps; steps < page {
			break
		}
	}
	return to, nil
}
