package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A Moment is a time, or a duration before now.
type Moment struct {
	at   time.Time
	back time.Duration // negative; otherwise at holds
}

// ParseMoment parses a time in RFC 3339, with or without a leading @, or a time ago, such as
// -1h30m. It returns false for any other text.
func ParseMoment(text string) (Moment, bool) {
	at, err := time.Parse(time.RFC3339, strings.TrimPrefix(text, "@"))
	if err == nil {
		return Moment{at: at}, true
	}
	back, err := time.ParseDuration(text)
	return Moment{back: back}, err == nil && back < 0
}

// Time returns the time; a time ago counts from now by Redis' clock.
func (m Moment) Time(ctx context.Context, c *store.Client) (time.Time, error) {
	if m.back == 0 {
		return m.at, nil
	}
	now, err := c.Redis().Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("the clock of Redis: %w", err)
	}
	return now.Add(m.back), nil
}
