package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

const quarantineVersion = 1

// endPrefix begins the names of ends. No entry ID begins with it.
const endPrefix = "end "

// EndName names the end of a row that ends once, at a time in ms.
func EndName(table, key string, at int64) string {
	return endPrefix + table + " " + strconv.FormatInt(at, 10) + " " + base64.RawURLEncoding.EncodeToString([]byte(key))
}

// A Quarantine is why a partition stands still until an operator ends that, or why a worker halted.
type Quarantine struct {
	Version int    `json:"v"` // set when it is written
	Reason  string `json:"reason"`
	Event   string `json:"event,omitempty"` // entry ID, "" when it was no event's fault
	Worker  string `json:"worker"`
	At      int64  `json:"at"`              // ms
	Epoch   int64  `json:"epoch,omitempty"` // of the ownership, where there is no event
	Ending  string `json:"end,omitempty"`   // "" when it was not at the end of a row; else EndName
}

// Quarantine stores that a partition of the ownership is quarantined: later takeovers return it,
// until ReleaseQuarantine. It returns ErrFenced if the ownership is over. It retries while its
// outcome is unknown and ctx lives, and may be repeated.
func (c RetryStore) Quarantine(ctx context.Context, p Partition, t Claim, q Quarantine) error {
	return c.storeStop(ctx, p, t, q, "quarantine")
}

// Halted stores why and at which event of a partition its worker halted, shown as View.Halt until
// the event is acked, or without one until another ownership begins. It keeps no later owner away; otherwise it is like Quarantine.
func (c RetryStore) Halted(ctx context.Context, p Partition, t Claim, q Quarantine) error {
	return c.storeStop(ctx, p, t, q, "halt")
}

func (c RetryStore) storeStop(ctx context.Context, p Partition, t Claim, q Quarantine, field string) error {
	q.Version, q.Reason = quarantineVersion, cut(q.Reason)
	text, err := json.Marshal(q)
	if err != nil {
		return p.wrap(field, err)
	}
	return p.failed(field, c.persistScript(ctx, quarantineScript, []string{p.Lock, p.Own}, t.LockValue(), text, field))
}

// Quarantined returns the quarantine of a partition, nil if there is none.
func (c RetryStore) Quarantined(ctx context.Context, p Partition) (*Quarantine, error) {
	text, err := c.quarantine(ctx, p)
	if err != nil {
		return nil, p.wrap("quarantine", err)
	}
	q, err := parseQuarantine(text)
	return q, p.wrap("quarantine", err)
}

func (c RetryStore) quarantine(ctx context.Context, p Partition) (string, error) {
	text, err := c.Retrying.HGet(ctx, p.Own, "quarantine").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", classify(err)
	}
	return text, nil
}

// ErrNothingToSkip is returned if a quarantine names neither an event nor the end of a row.
var ErrNothingToSkip = errors.New("the quarantine names no event or row that could be skipped")

// ReleaseQuarantine ends the quarantine of a partition and returns it; ok is false if there is
// none. With skip, its event is passed over, unprocessed: later takeovers return it as Skip, or the end
// of a row as SkipEnd. If there is neither, the error is ErrNothingToSkip. A quarantine that begins meanwhile is left
// alone. It retries while its outcome is unknown and ctx lives, and may be repeated. It changes
// LeaseResult.OperatorVersion and sends the owner a hint, best effort.
func (c Operator) ReleaseQuarantine(ctx context.Context, p Partition, skip bool) (q Quarantine, ok bool, err error) {
	for {
		text, err := RetryStore(c).quarantine(ctx, p)
		if err != nil || text == "" {
			return Quarantine{}, false, p.wrap("resume", err)
		}
		q, err := parseQuarantine(text)
		if err != nil {
			return Quarantine{}, false, p.wrap("resume", err)
		}
		event := ""
		if skip {
			if event = cmp.Or(q.Event, q.Ending); event == "" {
				return *q, false, p.wrap("resume", ErrNothingToSkip)
			}
		}
		var n int64
		err = persist(ctx, func() error {
			var err error
			n, err = resumeScript.Run(ctx, c.NoRetry, []string{p.Own}, text, event).Int64()
			return classify(err)
		})
		if err != nil {
			return *q, false, p.wrap("resume", err)
		}
		if n == 1 {
			Control(c).NotifyOwner(ctx, p)
			return *q, true, nil
		}
	}
}

func parseQuarantine(text string) (*Quarantine, error) {
	if text == "" {
		return nil, nil
	}
	q := new(Quarantine)
	if err := json.Unmarshal([]byte(text), q); err != nil {
		return nil, fmt.Errorf("stored quarantine is not readable: %w", err)
	}
	if q.Version != quarantineVersion {
		return nil, fmt.Errorf("stored quarantine has version %d, not %d: written by another release", q.Version, quarantineVersion)
	}
	return q, nil
}
