package inspect

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

// An AuditState is an action of an operator.
type AuditState struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Who    string    `json:"who"`  // as given by the operator
	From   string    `json:"from"` // remote address
	What   string    `json:"what"`
	On     string    `json:"on"`
	Why    string    `json:"why"`
	Detail string    `json:"detail"`

	Outcome string     `json:"outcome"` // done, failed, or "" if it was not recorded
	Result  string     `json:"result"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// auditMost is more than the number of actions ever kept.
const auditMost = 1_000_000

// Audit returns the last actions of operators, at most limit, newest first.
func Audit(ctx context.Context, c *store.Client, limit int) ([]AuditState, error) {
	// If actions overlap, an outcome may be apart from its action.
	notes, err := c.Audits(ctx, 2*min(limit, auditMost)+100)
	if err != nil {
		return nil, err
	}
	outcomes := map[string]store.Audit{}
	states := []AuditState{}
	for _, n := range notes {
		if n.Of != "" {
			outcomes[n.Of] = n
			continue
		}
		if len(states) == limit {
			break
		}
		s := AuditState{ID: n.ID, At: entryid.Time(n.ID), Who: n.Who, From: n.From, What: n.What, On: n.On, Why: n.Why, Detail: n.Detail}
		if end, is := outcomes[n.ID]; is {
			at := entryid.Time(end.ID)
			s.Outcome, s.Result, s.Ended = end.Outcome, end.Result, &at
		}
		states = append(states, s)
	}
	return states, nil
}
