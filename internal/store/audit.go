package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// auditLength is about how many entries the audit stream keeps: two for each action.
const auditLength = 20_000

// Fields of an entry of the audit stream.
const (
	auditVersion = "v" // 1
	auditWho     = "who"
	auditFrom    = "from"
	auditWhat    = "what"
	auditOn      = "on"
	auditWhy     = "why"
	auditDetail  = "detail"
	auditOf      = "of"
	auditOutcome = "outcome"
	auditResult  = "result"
)

// An Audit is an action of an operator before it begins, or, with Of, its outcome.
type Audit struct {
	ID string // of its entry

	Who    string // as they call themselves
	From   string // the address that it came from
	What   string // such as replay
	On     string // such as orders/printer
	Why    string
	Detail string // such as the IDs of the events

	Of      string // ID of the entry of the action
	Outcome string // done or failed
	Result  string
}

// An AuditLog is the audit stream of the app. The dashboard writes the actions of
// operators to it, and inspect reads it.
type AuditLog struct{ *core }

// BeginAudit records that an action is about to begin, and returns the entry's ID. It is
// not repeated: after an error the entry may be there or not.
func (c AuditLog) BeginAudit(ctx context.Context, a Audit) (string, error) {
	id, err := c.audit(ctx, auditWho, a.Who, auditFrom, a.From, auditWhat, a.What, auditOn, a.On, auditWhy, a.Why, auditDetail, a.Detail)
	if err != nil {
		return "", c.auditError(err)
	}
	return id, nil
}

// EndAudit records the outcome of an action. It retries while its own outcome
// is unknown: a second entry with the same outcome does no harm.
func (c AuditLog) EndAudit(ctx context.Context, a Audit) error {
	return c.auditError(persist(ctx, func() error {
		_, err := c.audit(ctx, auditOf, a.Of, auditOutcome, a.Outcome, auditResult, a.Result)
		return err
	}))
}

func (c AuditLog) audit(ctx context.Context, fields ...string) (string, error) {
	id, err := c.NoRetry.XAdd(ctx, &redis.XAddArgs{
		Stream: c.keys.Audit(), MaxLen: auditLength, Approx: true, Values: append([]string{auditVersion, "1"}, fields...),
	}).Result()
	return id, classify(err)
}

// auditText bounds the result of an action in the audit stream, in bytes.
const auditText = 2 << 10

// Audited calls do between two entries in the audit stream. Without the first one do is not called,
// and unnoted and err are why; after do unnoted is why its outcome is not there. What do did is noted
// even if ctx ends.
func (c AuditLog) Audited(ctx context.Context, a Audit, do func(context.Context) (result string, err error)) (result string, unnoted, err error) {
	id, err := c.BeginAudit(ctx, a)
	if err != nil {
		err = fmt.Errorf("nothing was done, since it could not be noted: %w", err)
		return "", err, err
	}
	end := Audit{Of: id, Outcome: "done"}
	result, err = do(ctx)
	if end.Result = result; err != nil {
		end.Outcome, end.Result = "failed", strings.TrimPrefix(result+"; "+err.Error(), "; ")
	}
	end.Result = strings.ToValidUTF8(end.Result[:min(len(end.Result), auditText)], "")
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditPatience)
	defer cancel()
	return result, c.EndAudit(noting, end), err
}

// auditPatience bounds how long the outcome of an action is tried to be noted.
const auditPatience = 10 * time.Second

// Audits returns at most n entries of the audit stream, the newest first.
func (c AuditLog) Audits(ctx context.Context, n int) ([]Audit, error) {
	entries, err := c.Retrying.XRevRangeN(ctx, c.keys.Audit(), "+", "-", int64(n)).Result()
	if err != nil {
		return nil, c.auditError(classify(err))
	}
	out := make([]Audit, len(entries))
	for i, e := range entries {
		of := func(name string) string { return textOf(e.Values, name) }
		out[i] = Audit{
			ID: e.ID, Who: of(auditWho), From: of(auditFrom), What: of(auditWhat), On: of(auditOn), Why: of(auditWhy), Detail: of(auditDetail),
			Of: of(auditOf), Outcome: of(auditOutcome), Result: of(auditResult),
		}
	}
	return out, nil
}

func (c AuditLog) auditError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("audit of app %s (%s): %w", c.keys.App, c.keys.Audit(), err)
}
