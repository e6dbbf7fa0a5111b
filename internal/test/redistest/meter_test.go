package redistest

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// busy is a script that keeps the server for a while, which depends on its argument.
const busy = "for i = 1, ARGV[1] * 1000 do local x = redis.call('PING') end return 'done'"

func metered(t *testing.T) (*Meter, *redis.Client) {
	t.Helper()
	m := StartMeter(t, Start(t))
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return m, c
}

func TestMeterTellsTheLongestScript(t *testing.T) {
	m, c := metered(t)
	cost := m.Measure(func() {
		c.Ping(t.Context())
		c.Eval(t.Context(), busy, nil, 10)
		c.Eval(t.Context(), busy, nil, 1)
	})
	if !strings.HasPrefix(strings.ToLower(cost.Command), "eval ") || !strings.HasSuffix(cost.Command, " 0 10") {
		t.Errorf("longest: %s, want the second command", cost.Command)
	}
	if cost.Longest <= 0 || cost.Row < cost.Longest {
		t.Errorf("%v", cost)
	}
}

func TestMeterTellsWhatIsExecutedInARow(t *testing.T) {
	m, c := metered(t)
	c.Ping(t.Context())
	for _, tt := range []struct {
		name  string
		scene func()
		want  int
	}{
		{"one by one", func() {
			for range 20 {
				c.Eval(t.Context(), busy, nil, 1)
			}
		}, 1},
		{"a pipeline", func() {
			pipe := c.Pipeline()
			for range 20 {
				pipe.Eval(t.Context(), busy, nil, 1)
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Error(err)
			}
		}, 20},
		{"a pipeline that the server reads in parts", func() {
			pipe := c.Pipeline()
			for range 20 {
				pipe.Eval(t.Context(), busy, nil, 1, strings.Repeat("x", 3000))
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Error(err)
			}
		}, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := m.Measure(tt.scene); got.InRow < tt.want-1 || got.InRow > tt.want {
				t.Errorf("%d in a row, want %d: %v", got.InRow, tt.want, got)
			}
		})
	}
}

func TestMeterHolds(t *testing.T) {
	m, c := metered(t)
	c.Ping(t.Context())
	prepared, run := 0, 0
	cost := m.Hold(time.Hour, time.Hour, func() { prepared++ }, func() { run++; c.Ping(t.Context()) })
	if prepared != 1 || run != 1 || cost.InRow != 1 {
		t.Errorf("prepared %d times, run %d times: %v", prepared, run, cost)
	}
}

// A server that had half of a core took half as long as it says.
func TestMeterDoesNotCountWaitingForACore(t *testing.T) {
	c := Cost{Longest: 30 * time.Millisecond, Row: 80 * time.Millisecond}
	if got := c.scaled(2*time.Second, 2*time.Second); got.Longest != 15*time.Millisecond || got.Row != 40*time.Millisecond {
		t.Errorf("scaled to a half: %v", got)
	}
	for _, idle := range [][2]time.Duration{{time.Second, 0}, {0, 0}, {0, time.Second}} {
		if got := c.scaled(idle[0], idle[1]); got != c {
			t.Errorf("scaled where it ran %v and waited %v: %v", idle[0], idle[1], got)
		}
	}
}
