package runnel_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// logSettings are the log's level and format as the app resolves them.
func logSettings(t *testing.T, o *runnel.Options) (level, format string) {
	t.Helper()
	s, err := appview.Of(runnel.New("contract", o)).Settings()
	if err != nil {
		t.Fatal(err)
	}
	return s.LogLevel, s.LogFormat
}

func TestLogSettingsGoCodeEnvironmentDefault(t *testing.T) {
	want := func(what string, o *runnel.Options, level, format string) {
		t.Helper()
		if l, f := logSettings(t, o); l != level || f != format {
			t.Errorf("%s: level %s, format %s; want %s, %s", what, l, f, level, format)
		}
	}
	want("default", nil, "info", "text")
	t.Setenv("RUNNEL_LOG_LEVEL", "debug")
	t.Setenv("RUNNEL_LOG_FORMAT", "json")
	want("environment", nil, "debug", "json")
	want("code", &runnel.Options{LogLevel: "warn", LogFormat: "text"}, "warn", "text")
}

func TestTheKeyLayoutGoesCodeEnvironmentDefault(t *testing.T) {
	want := func(what string, o *runnel.Options, layout runnel.KeyLayout) {
		t.Helper()
		if got := metaOf(t, settled(o, nil, nil)).Meta.Layout; got != string(layout) {
			t.Errorf("%s: %s, want %s", what, got, layout)
		}
	}
	want("default", nil, runnel.LayoutStandalone)
	t.Setenv("RUNNEL_KEY_LAYOUT", "cluster")
	want("environment", nil, runnel.LayoutCluster)
	want("code", &runnel.Options{KeyLayout: runnel.LayoutStandalone}, runnel.LayoutStandalone)
}

// What is wrong with the log and with the address is an error that names the
// variable too, and the password of an address is not shown.
func TestAMalformedVariableOfTheAppIsNamed(t *testing.T) {
	for _, tt := range []struct{ variable, value, shown string }{
		{"RUNNEL_LOG_LEVEL", "loud", "loud"},
		{"RUNNEL_LOG_FORMAT", "xml", "xml"},
		{"RUNNEL_REDIS_URL", "redis://:secret@host:port", "@host:port"},
		{"RUNNEL_REDIS_URL", "nonsense", "is malformed"},
	} {
		t.Run(tt.variable, func(t *testing.T) {
			t.Setenv(tt.variable, tt.value)
			err := settled(nil, nil, nil).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.variable) || !strings.Contains(err.Error(), tt.shown) || strings.Contains(err.Error(), "secret") {
				t.Errorf("Run: %v", err)
			}
		})
	}
	// An address in the code is not the variable's fault.
	err := settled(&runnel.Options{RedisURL: "nonsense"}, nil, nil).Run(t.Context())
	if err == nil || strings.Contains(err.Error(), "RUNNEL_") || !strings.Contains(err.Error(), "redis URL \"***\" is malformed") {
		t.Errorf("Run: %v", err)
	}
}

// RUNNEL_WORKER_NAME is the name in logs and status, unless code gives another.
func TestTheNameOfTheWorkerGoesCodeEnvironmentDefault(t *testing.T) {
	srv := redistest.Start(t)
	started := func(o *runnel.Options) string {
		var out bytes.Buffer
		o.RedisURL, o.Logger = srv.URL(), slog.New(slog.NewTextHandler(&out, nil))
		app := runnel.New("contract", o)
		defer app.Close()
		ctx, cancel := context.WithCancel(t.Context())
		app.Task("stop", func(context.Context) error { cancel(); return nil }, nil)
		if err := app.Run(ctx); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	if s := started(&runnel.Options{}); strings.Contains(s, "worker=mill") || !strings.Contains(s, "worker=") {
		t.Errorf("default: %s", s)
	}
	t.Setenv("RUNNEL_WORKER_NAME", "mill")
	if s := started(&runnel.Options{}); !strings.Contains(s, "worker=mill ") {
		t.Errorf("environment: %s", s)
	}
	if s := started(&runnel.Options{WorkerName: "weir"}); !strings.Contains(s, "worker=weir ") {
		t.Errorf("code: %s", s)
	}
}

// LeaderPoll and its variable say how soon a dead leader is replaced.
func TestALeaderIsReplacedAfterThreePolls(t *testing.T) {
	for _, tt := range []struct {
		name, env string
		code      time.Duration
		within    time.Duration
	}{
		{"default", "", 0, 16 * time.Second},
		{"environment", "1s", 0, 4 * time.Second},
		{"code", "30s", 2 * time.Second, 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("RUNNEL_LEADER_POLL", tt.env)
			var n notes
			runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
				o.LeaderPoll = tt.code
				app := runnel.New("contract", o)
				app.Task("lead", func(context.Context) error { n.add(o.WorkerName); return nil }, &runnel.TaskOptions{Leader: true})
				return app
			}, func(c *runneltest.Cluster) {
				a := c.Start("a")
				c.Wait(func() bool { return n.has("a") })
				c.Start("b")
				c.Sleep(time.Minute)
				a.Kill()
				began := time.Now()
				c.Wait(func() bool { return n.has("b") })
				if d := time.Since(began); d > tt.within || d < tt.within/4 {
					t.Errorf("replaced after %v, want up to %v", d, tt.within)
				}
			})
		})
	}
}

// What a task's zone is when it says none.
func TestTheZoneOfCronGoesTaskAppEnvironmentDefault(t *testing.T) {
	kolkata, tokyo := time.FixedZone("a", 5*3600+1800), time.FixedZone("b", 9*3600)
	for _, tt := range []struct {
		name, env string
		app       *time.Location
		task      *runnel.TaskOptions
		want      string
	}{
		{"default", "", nil, nil, "07:30"},
		{"environment", "Europe/Berlin", nil, nil, "06:30"}, // in winter
		{"app", "Europe/Berlin", kolkata, nil, "02:00"},
		{"task", "Europe/Berlin", kolkata, &runnel.TaskOptions{TimeZone: tokyo}, "22:30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("RUNNEL_TIME_ZONE", tt.env)
			var n notes
			runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
				o.TimeZone = tt.app
				app := runnel.New("contract", o)
				app.Cron("report", "30 7 * * *", func(context.Context) error {
					n.add(time.Now().UTC().Format("15:04"))
					return nil
				}, tt.task)
				return app
			}, func(c *runneltest.Cluster) {
				c.Start("a")
				c.Sleep(24 * time.Hour) // of 1 January 2000
			})
			if got := strings.Join(n.all(), " "); got != tt.want {
				t.Errorf("ran at %s UTC, want %s", got, tt.want)
			}
		})
	}
}

// Reads that block go through connections of our own: a shared client with a
// single one stays free.
func TestASharedClientIsNotBlocked(t *testing.T) {
	srv := redistest.Start(t)
	shared := redis.NewClient(&redis.Options{Addr: srv.Addr(), PoolSize: 1})
	defer shared.Close()
	app := runnel.New("contract", &runnel.Options{Redis: shared, Logger: slog.New(slog.DiscardHandler)})
	runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 2}).Process("p", ignoreAll, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	rdb := srv.Client(t)
	await(t, "a blocked read", func() bool {
		return app.Ready() == nil && strings.Contains(rdb.Info(t.Context(), "clients").Val(), "blocked_clients:3") // two of the partitions, one of the control streams
	})
	for range 20 {
		quick, over := context.WithTimeout(t.Context(), time.Second)
		if err := shared.Ping(quick).Err(); err != nil {
			t.Errorf("the shared client while a read blocks: %v", err)
		}
		over()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := app.Close(); err != nil {
		t.Error(err)
	}
	// What we opened is closed; what is left is the shared client and this test's.
	await(t, "our connections are closed", func() bool {
		return strings.Count(rdb.ClientList(t.Context()).Val(), "\n") == 2
	})
	if err := shared.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the shared client after Close: %v", err)
	}
}

// await polls a condition on a real server.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
