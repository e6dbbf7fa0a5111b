// A setting comes from a flag, from code, from the environment or from its default: the first of
// them that has it.

package runnel_test

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

// settled is an app with a stream and a processor under these options.
func settled(app *runnel.Options, stream *runnel.StreamOptions, proc *runnel.ProcessorOptions) *runnel.App {
	a := runnel.New("contract", app)
	runnel.NewStream(a, "items", keyOfItem, stream).Process("p", ignoreAll, proc)
	return a
}

// precedences are the settings that streams and processors inherit, from weak to strong. field
// is a field of ProcessorOptions or StreamOptions.
var precedences = []struct {
	variable, value  string
	field            string
	byDefault, byEnv any
	inApp, inOwn     any
}{
	{"RUNNEL_LEASE", "7s", "Lease", 10 * time.Second, 7 * time.Second, 6 * time.Second, 5 * time.Second},
	{"RUNNEL_GRACE", "3s", "Grace", 8 * time.Second, 3 * time.Second, 2 * time.Second, time.Second},
	{"RUNNEL_PREFETCH", "99", "Prefetch", 1024, 99, 98, 97},
	{"RUNNEL_PREFETCH_BYTES", "999", "PrefetchBytes", int64(8 << 20), int64(999), int64(998), int64(997)},
	{"RUNNEL_JOIN_DELAY", "3s", "JoinDelay", time.Duration(0), 3 * time.Second, 2 * time.Second, time.Second},
	{"RUNNEL_READ_CONNS", "5", "ReadConns", 8, 5, 3, 6},
	{"RUNNEL_PARTITIONS", "5", "Partitions", 16, 5, 4, 3},
	{"RUNNEL_MAX_RECORD", "5000", "MaxRecord", int64(64 << 20), int64(5000), int64(4000), int64(3000)},
	{"RUNNEL_MAX_LEN", "500", "MaxLen", int64(50_000), int64(500), int64(400), int64(300)},
}

// fieldOf returns the first field of this name in some structs.
func fieldOf(t *testing.T, name string, structs ...any) reflect.Value {
	t.Helper()
	for _, s := range structs {
		if f := reflect.ValueOf(s).Elem().FieldByName(name); f.IsValid() {
			return f
		}
	}
	t.Fatalf("no field %s", name)
	return reflect.Value{}
}

func TestCodeGoesBeforeEnvironmentGoesBeforeDefault(t *testing.T) {
	for _, tt := range precedences {
		t.Run(tt.variable, func(t *testing.T) {
			var app runnel.Options
			var s runnel.StreamOptions
			var p runnel.ProcessorOptions
			check := func(what string, want any) {
				t.Helper()
				a := settled(&app, &s, &p)
				st := metaOf(t, a)
				if got := fieldOf(t, tt.field, processorOf(t, a), st, &st.Meta).Interface(); got != want {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			check("default", tt.byDefault)
			t.Setenv(tt.variable, tt.value)
			check("environment", tt.byEnv)
			fieldOf(t, tt.field, &app.Processor, &app.Stream).Set(reflect.ValueOf(tt.inApp))
			check("app's options", tt.inApp)
			fieldOf(t, tt.field, &p, &s).Set(reflect.ValueOf(tt.inOwn))
			check("own options", tt.inOwn)
		})
	}
}

func metaOf(t *testing.T, app *runnel.App) *appview.Stream {
	t.Helper()
	all, err := appview.Of(app).Streams()
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestFlagsGoBeforeCode(t *testing.T) {
	addr := func(set bool, env string, flag string) string {
		if env != "" {
			t.Setenv("RUNNEL_REDIS_URL", env)
		}
		o := &runnel.Options{}
		if set {
			o.RedisURL = "redis://code:1"
		}
		app := settled(o, nil, nil)
		appview.Of(app).Override(appview.Overrides{RedisURL: flag})
		client, err := appview.Of(app).Client()
		if err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		return client.Addr()
	}
	for _, tt := range []struct{ got, want string }{
		{addr(false, "", ""), "127.0.0.1:6379"},
		{addr(false, "redis://env:1", ""), "env:1"},
		{addr(true, "redis://env:1", ""), "code:1"},
		{addr(true, "redis://env:1", "redis://flag:1"), "flag:1"},
	} {
		if tt.got != tt.want {
			t.Errorf("redis at %s, want %s", tt.got, tt.want)
		}
	}
}

func TestAMalformedVariableIsAnErrorThatNamesIt(t *testing.T) {
	for variable, value := range map[string]string{
		"RUNNEL_LEADER_POLL": "often", "RUNNEL_KEY_LAYOUT": "flat", "RUNNEL_TIME_ZONE": "Moon/Sea", "RUNNEL_PARTITIONS": "0",
		"RUNNEL_MAX_LEN": "big", "RUNNEL_ON_ERROR": "shrug", "RUNNEL_LEASE": "1ms", "RUNNEL_GRACE": "8", "RUNNEL_JOIN_DELAY": "-1s",
		"RUNNEL_PREFETCH": "1.5", "RUNNEL_PREFETCH_BYTES": "8M", "RUNNEL_READ_CONNS": "65", "RUNNEL_TIMEOUT": "-1s", "RUNNEL_READS": "both", "RUNNEL_MAX_RECORD": "64MiB", "RUNNEL_WORKER_NAME": "w\x1b]0;X\a",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			// Even if code overrides the variable: the mistake would surprise later.
			app := settled(&runnel.Options{LeaderPoll: time.Second}, &runnel.StreamOptions{Partitions: 1}, nil)
			err := app.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), strings.Trim(strconv.Quote(value), `"`)) {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// Settings are read at first use, not when the app is declared.
func TestTheEnvironmentIsReadAtFirstUse(t *testing.T) {
	app := settled(nil, nil, nil)
	t.Setenv("RUNNEL_PREFETCH", "7")
	if n := processorOf(t, app).Prefetch; n != 7 {
		t.Errorf("Prefetch %d", n)
	}
}

func TestPolicyFromTheEnvironment(t *testing.T) {
	t.Setenv("RUNNEL_ON_ERROR", "ignore")
	got := runneltest.Process(t, declareItems(failAt, nil), "p", items(1, 2, 3)...)
	wantAcked(t, got, "1-0", "2-0", "3-0")
	got = runneltest.Process(t, declareItems(failAt, &runnel.ProcessorOptions{OnError: runnel.Halt}), "p", items(1, 2, 3)...)
	wantAcked(t, got, "1-0")
}

func TestReadsGoCodeEnvironmentDefault(t *testing.T) {
	t.Setenv("RUNNEL_READS", "")
	var app runnel.Options
	var own runnel.ProcessorOptions
	want := func(what string, byPosition bool) {
		t.Helper()
		if got := processorOf(t, settled(&app, nil, &own)).ByPosition; got != byPosition {
			t.Errorf("%s: by position %v", what, got)
		}
	}
	want("default", false)
	t.Setenv("RUNNEL_READS", "position")
	want("environment", true)
	app.Processor.Reads = runnel.ByGroup
	want("app's options", false)
	own.Reads = runnel.ByPosition
	want("own options", true)
}

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

// The time zone of a task without one of its own.
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
