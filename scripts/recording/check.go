package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// check returns in a sentence what the workers printed, taken together. It is an error if an
// order of a customer is missing, out of order, or repeated where the owner did not change.
func check(r run) (string, error) {
	type printed struct {
		line
		worker string
	}
	var all []printed
	for _, p := range r.panes {
		for _, l := range p.lines {
			all = append(all, printed{l, p.worker})
		}
	}
	slices.SortStableFunc(all, func(x, y printed) int { return cmp.Compare(x.at, y.at) })

	last, by := map[string]int{}, map[string]string{}
	var twice []string
	for _, p := range all {
		var customer string
		var n int
		if _, err := fmt.Sscan(p.text, &customer, &n); err != nil {
			continue // what it owns
		}
		switch {
		case n == last[customer]+1:
		case n <= last[customer] && n > 0 && by[customer] != p.worker:
			twice = append(twice, fmt.Sprint(customer, " ", n))
		default:
			return "", fmt.Errorf("worker %s printed order %d of %s after order %d", p.worker, n, customer, last[customer])
		}
		last[customer], by[customer] = n, p.worker
	}
	for _, customer := range customers {
		if last[customer] != r.sent {
			return "", fmt.Errorf("the last order of %s is %d, of %d", customer, last[customer], r.sent)
		}
	}
	text := fmt.Sprintf("Orders 1 to %d of each customer: none is missing, none is out of order", r.sent)
	if len(twice) > 0 {
		text += "; twice, for want of an ack: " + strings.Join(twice, ", ")
	}
	return text + ".", nil
}
