package store

import (
	"context"
	"errors"
)

// countPage is how many entries one script counts.
const countPage = 500

var errTooLarge = errors.New("entries too large to count: give an ID or a time instead of a number of events")

// CountBehind counts the entries of a partition behind an ID, a page per round trip; the entries
// stay on the server. A limit above zero ends the count. more reports that there are more entries,
// or that they are too large to be counted.
func (c Viewer) CountBehind(ctx context.Context, p Partition, id string, limit int64) (n int64, more bool, err error) {
	for {
		page, err := c.page(ctx, p, "XRANGE", "("+id, "+", countPage)
		switch {
		case errors.Is(err, errTooLarge):
			return n, true, nil
		case err != nil:
			return 0, false, p.wrap("count", err)
		}
		n, id = n+page.n, page.last
		if limit > 0 && n > limit {
			return limit, true, nil
		}
		if page.n < page.room {
			return n, false, nil
		}
	}
}

// Step returns the position n entries behind from, or before it if n is negative; if there are too
// few, the last one or "0-0". It counts a page per round trip; the entries stay on the server.
func (c Viewer) Step(ctx context.Context, p Partition, from string, n int64) (to string, err error) {
	command, next, end := "XRANGE", "("+from, "+"
	if n < 0 {
		command, next, end, n = "XREVRANGE", from, "-", 1-n // so many entries more are behind the new position
	}
	for to = from; n > 0; {
		page, err := c.page(ctx, p, command, next, end, min(n, countPage))
		if err != nil {
			return "", p.wrap("step", err)
		}
		if page.n > 0 {
			to, next = page.last, "("+page.last
		}
		if n -= page.n; n > 0 && page.n < page.room {
			if command == "XREVRANGE" {
				to = "0-0"
			}
			break
		}
	}
	return to, nil
}

// A page is what page.lua has read.
type page struct {
	n, room int64
	last    string
}

func (c Viewer) page(ctx context.Context, p Partition, command, from, to string, most int64) (page, error) {
	reply, err := pageScript.Run(ctx, c.Retrying, []string{p.Log}, command, from, to, most).Slice()
	if err != nil {
		return page{}, classify(err)
	}
	var got page
	if err := scan(reply, &got.n, &got.last, &got.room); err != nil {
		return page{}, err
	}
	if got.room == 0 {
		return page{}, errTooLarge
	}
	return got, nil
}
