package rebalance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What Python's runnel leaves behind when it is stopped, or killed.
const (
	pythonStopped = `{}`
	pythonKilled  = `{"iqzhn8WjQjSLPZZU3iBIAA": {"joined_at": "2026-11-23T02:48:55.296746", "partitions": [0, 1]}, ` +
		`"G5ySoNH2RmmcueeTuIXhXQ": {"joined_at": "2026-11-23T02:48:56", "partitions": []}}`
)

func TestParseOfPythonsMembership(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  int // executors of Python's, -1: no membership
	}{
		{pythonStopped, 0},
		{pythonKilled, 2},
		{`null`, -1},
		{`[]`, -1},
		{`{"a": null}`, -1},
		{`{"a": {"joined_at": "2026-11-23T02:48:55"}}`, -1},
		{`{"a": {"joined_at": "yesterday", "partitions": []}}`, -1},
		{`{"a": {"partitions": [0]}}`, -1},
		{`{"executors": {}}`, -1},
	} {
		g, err := Parse([]byte(tt.value))
		switch {
		case tt.want < 0 && !errors.Is(err, ErrInvalid):
			t.Errorf("%s: %v, want %v", tt.value, err, ErrInvalid)
		case tt.want >= 0 && (err != nil || len(g.Python) != tt.want || len(g.Executors) != 0):
			t.Errorf("%s: %+v, %v; want %d executors of Python's", tt.value, g, err, tt.want)
		}
	}
}

func TestJoinAfterPython(t *testing.T) {
	for name, value := range map[string]string{"stopped": pythonStopped, "killed": pythonKilled} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 1, 4, 10*time.Second)
				c.value = []byte(value)
				co, stop := c.alone(func(n *node) Store { return n })
				defer stop()
				time.Sleep(time.Second)
				if s := co.State(); !s.Settled() || len(s.Owned) != 4 {
					t.Errorf("%+v, want all 4 partitions", s)
				}
				if g := c.group(); len(g.Executors) != 1 || len(g.Python) != 0 {
					t.Errorf("stored is %s", c.value)
				}
			})
		})
	}
}

// A living executor of Python's runnel keeps others from joining and from changing its membership,
// and its heartbeat is not shortened.
func TestJoinBesidePython(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 4, 10*time.Second)
		c.value = []byte(pythonKilled)
		end := time.Now().Add(2 * time.Minute)
		c.beats["iqzhn8WjQjSLPZZU3iBIAA"] = end
		n := &node{c: c, ctx: t.Context(), name: "me", id: "me", lease: map[int]time.Time{}, busy: map[int]string{}}
		co := NewCoordinator(Config{ID: n.id, Executor: Executor{Worker: n.name, Expiry: c.expiry}, Partitions: 4, Salt: "p", Store: n, Owner: n})
		var python *PythonError
		if err := co.Run(t.Context()); !errors.As(err, &python) || !strings.Contains(err.Error(), "executor iqzhn8WjQjSLPZZU3iBIAA (its heartbeat expires in 2m0s)") {
			t.Errorf("%v, want a refusal that names the executor", err)
		}
		if err := Vacant(t.Context(), n); !errors.As(err, &python) {
			t.Errorf("Vacant: %v", err)
		}
		_, err := Steer(context.Background(), n, func(g Group) (Group, error) { return g.Pin("p", "me", 0) })
		if !errors.As(err, &python) {
			t.Errorf("Steer: %v", err)
		}
		if string(c.value) != pythonKilled || !c.beats["iqzhn8WjQjSLPZZU3iBIAA"].Equal(end) {
			t.Errorf("changed: %s, heartbeat until %v, want %v", c.value, c.beats, end)
		}
	})
}
