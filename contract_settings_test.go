package runnel_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/runneltest"
)

func TestNamesPanicAtRegistration(t *testing.T) {
	task := func(context.Context) error { return nil }
	kinds := []struct {
		kind string
		dots bool
		call func(name string)
	}{
		{"New", false, func(name string) { runnel.New(name, nil) }},
		{"NewStream", true, func(name string) { runnel.NewStream(runnel.New("a", nil), name, keyOfItem, nil) }},
		{"Process", false, func(name string) {
			runnel.NewStream(runnel.New("a", nil), "s", keyOfItem, nil).Process(name, ignoreAll, nil)
		}},
		{"Task", false, func(name string) { runnel.New("a", nil).Task(name, task, nil) }},
		{"Every", false, func(name string) { runnel.New("a", nil).Every(name, time.Second, task, nil) }},
		{"Cron", false, func(name string) { runnel.New("a", nil).Cron(name, "* * * * *", task, nil) }},
	}
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			for _, good := range []string{"a", "my-proc", "A_9", strings.Repeat("x", 64)} {
				k.call(good)
			}
			bad := []string{"", " ", "a b", "a@b", "a:b", "ä", "{a}", "a/b", "a\n", strings.Repeat("x", 65)}
			if k.dots {
				k.call("a.b")
			} else {
				bad = append(bad, "a.b")
			}
			for _, name := range bad {
				wantPanic(t, fmt.Sprintf("the name %q is not 1 to 64 of", name), func() { k.call(name) })
			}
		})
	}
}

func TestMistakesPanicAtRegistration(t *testing.T) {
	task := func(context.Context) error { return nil }
	app := func() *runnel.App { return runnel.New("a", nil) }
	stream := func(o *runnel.StreamOptions) { runnel.NewStream(app(), "s", keyOfItem, o) }
	process := func(o *runnel.ProcessorOptions) {
		runnel.NewStream(app(), "s", keyOfItem, nil).Process("p", ignoreAll, o)
	}
	tests := map[string]func(){
		"the app has a stream of that name already": func() {
			a := app()
			runnel.NewStream(a, "s", keyOfItem, nil)
			runnel.NewStream(a, "s", keyOfItem, nil)
		},
		"the stream has a processor of that name already": func() {
			s := runnel.NewStream(app(), "s", keyOfItem, nil)
			s.Process("p", ignoreAll, nil)
			s.Process("p", ignoreAll, nil)
		},
		"the app has a task of that name already": func() {
			a := app()
			a.Task("t", task, nil)
			a.Every("t", time.Second, task, nil)
		},
		"nil key function":                            func() { runnel.NewStream[item](app(), "s", nil, nil) },
		"Process p: nil function":                     func() { runnel.NewStream(app(), "s", keyOfItem, nil).Process("p", nil, nil) },
		"Task t: nil function":                        func() { app().Task("t", nil, nil) },
		"the interval must be positive":               func() { app().Every("t", 0, task, nil) },
		"Cron t: ":                                    func() { app().Cron("t", "61 * * * *", task, nil) },
		"OnError: unknown policy 9":                   func() { process(&runnel.ProcessorOptions{OnError: 9}) },
		"Lease 1ms is below 500ms":                    func() { process(&runnel.ProcessorOptions{Lease: time.Millisecond}) },
		"JoinDelay -1s is negative":                   func() { process(&runnel.ProcessorOptions{JoinDelay: -time.Second}) },
		"Prefetch -1 is negative":                     func() { process(&runnel.ProcessorOptions{Prefetch: -1}) },
		"PrefetchBytes -1 is negative":                func() { process(&runnel.ProcessorOptions{PrefetchBytes: -1}) },
		"ReadConns -1 is negative":                    func() { process(&runnel.ProcessorOptions{ReadConns: -1}) },
		"nil Middleware":                              func() { process(&runnel.ProcessorOptions{Middleware: []runnel.Middleware{nil}}) },
		"Partitions -1 is not between":                func() { stream(&runnel.StreamOptions{Partitions: -1}) },
		"Partitions 70000 is not between 1 and 65536": func() { stream(&runnel.StreamOptions{Partitions: 70000}) },
		"MaxLen -1 is negative":                       func() { stream(&runnel.StreamOptions{MaxLen: -1}) },
		"MaxRecord 1023 is not between":               func() { stream(&runnel.StreamOptions{MaxRecord: 1023}) },
		"Partitioner needs a Name and a Func":         func() { stream(&runnel.StreamOptions{Partitioner: &runnel.Partitioner{Name: "x"}}) },
		`WorkerName "w\x1b[2J": it has characters`:    func() { runnel.New("a", &runnel.Options{WorkerName: "w\x1b[2J"}) },
		`KeyLayout "x" is neither`:                    func() { runnel.New("a", &runnel.Options{KeyLayout: "x"}) },
		"LeaderPoll 1ms is below 100ms":               func() { runnel.New("a", &runnel.Options{LeaderPoll: time.Millisecond}) },
		"Stream: MaxLen -1 is negative":               func() { runnel.New("a", &runnel.Options{Stream: runnel.StreamOptions{MaxLen: -1}}) },
		"Processor: Prefetch -1 is negative": func() {
			runnel.New("a", &runnel.Options{Processor: runnel.ProcessorOptions{Prefetch: -1}})
		},
		"NewStream s: ": func() { // the codec refuses the type
			runnel.NewStream(app(), "s", func([]item) string { return "" }, &runnel.StreamOptions{Codec: codec.Fields})
		},
	}
	for want, fn := range tests {
		t.Run(want, func(t *testing.T) { wantPanic(t, want, fn) })
	}
}

func TestSameProcessorNameOnTwoStreamsIsFine(t *testing.T) {
	app := runnel.New("a", nil)
	for _, name := range []string{"s", "t"} {
		runnel.NewStream(app, name, keyOfItem, nil).Process("p", ignoreAll, nil)
	}
}

// settled is an app with a stream and a processor under these options.
func settled(app *runnel.Options, stream *runnel.StreamOptions, proc *runnel.ProcessorOptions) *runnel.App {
	a := runnel.New("contract", app)
	runnel.NewStream(a, "items", keyOfItem, stream).Process("p", ignoreAll, proc)
	return a
}

// precedences are the settings that streams and processors inherit, from weak to
// strong.
var precedences = []struct {
	variable, value  string
	byDefault, byEnv any
	inApp, inOwn     any
	setApp, setOwn   func(*runnel.Options, *runnel.StreamOptions, *runnel.ProcessorOptions)
	see              func(t *testing.T, a *runnel.App) any
}{
	{
		variable: "RUNNEL_LEASE", value: "7s", byDefault: 10 * time.Second, byEnv: 7 * time.Second, inApp: 6 * time.Second, inOwn: 5 * time.Second,
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) {
			o.Processor.Lease = 6 * time.Second
		},
		setOwn: func(_ *runnel.Options, _ *runnel.StreamOptions, p *runnel.ProcessorOptions) {
			p.Lease = 5 * time.Second
		},
		see: func(t *testing.T, a *runnel.App) any { return processorOf(t, a).Lease },
	},
	{
		variable: "RUNNEL_GRACE", value: "3s", byDefault: 8 * time.Second, byEnv: 3 * time.Second, inApp: 2 * time.Second, inOwn: time.Second,
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) {
			o.Processor.Grace = 2 * time.Second
		},
		setOwn: func(_ *runnel.Options, _ *runnel.StreamOptions, p *runnel.ProcessorOptions) { p.Grace = time.Second },
		see:    func(t *testing.T, a *runnel.App) any { return processorOf(t, a).Grace },
	},
	{
		variable: "RUNNEL_PREFETCH", value: "99", byDefault: 1024, byEnv: 99, inApp: 98, inOwn: 97,
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) {
			o.Processor.Prefetch = 98
		},
		setOwn: func(_ *runnel.Options, _ *runnel.StreamOptions, p *runnel.ProcessorOptions) { p.Prefetch = 97 },
		see:    func(t *testing.T, a *runnel.App) any { return processorOf(t, a).Prefetch },
	},
	{
		variable: "RUNNEL_PREFETCH_BYTES", value: "999", byDefault: int64(8 << 20), byEnv: int64(999), inApp: int64(998), inOwn: int64(997),
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) {
			o.Processor.PrefetchBytes = 998
		},
		setOwn: func(_ *runnel.Options, _ *runnel.StreamOptions, p *runnel.ProcessorOptions) { p.PrefetchBytes = 997 },
		see:    func(t *testing.T, a *runnel.App) any { return processorOf(t, a).PrefetchBytes },
	},
	{
		variable: "RUNNEL_JOIN_DELAY", value: "3s", byDefault: time.Duration(0), byEnv: 3 * time.Second, inApp: 2 * time.Second, inOwn: time.Second,
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) {
			o.Processor.JoinDelay = 2 * time.Second
		},
		setOwn: func(_ *runnel.Options, _ *runnel.StreamOptions, p *runnel.ProcessorOptions) {
			p.JoinDelay = time.Second
		},
		see: func(t *testing.T, a *runnel.App) any { return processorOf(t, a).JoinDelay },
	},
	{
		variable: "RUNNEL_READ_CONNS", value: "5", byDefault: 2, byEnv: 5, inApp: 3, inOwn: 4,
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) {
			o.Processor.ReadConns = 3
		},
		setOwn: func(_ *runnel.Options, _ *runnel.StreamOptions, p *runnel.ProcessorOptions) { p.ReadConns = 4 },
		see:    func(t *testing.T, a *runnel.App) any { return processorOf(t, a).ReadConns },
	},
	{
		variable: "RUNNEL_PARTITIONS", value: "5", byDefault: 16, byEnv: 5, inApp: 4, inOwn: 3,
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) { o.Stream.Partitions = 4 },
		setOwn: func(_ *runnel.Options, s *runnel.StreamOptions, _ *runnel.ProcessorOptions) { s.Partitions = 3 },
		see:    func(t *testing.T, a *runnel.App) any { return metaOf(t, a).Meta.Partitions },
	},
	{
		variable: "RUNNEL_MAX_RECORD", value: "5000", byDefault: int64(64 << 20), byEnv: int64(5000), inApp: int64(4000), inOwn: int64(3000),
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) {
			o.Stream.MaxRecord = 4000
		},
		setOwn: func(_ *runnel.Options, s *runnel.StreamOptions, _ *runnel.ProcessorOptions) { s.MaxRecord = 3000 },
		see:    func(t *testing.T, a *runnel.App) any { return metaOf(t, a).MaxRecord },
	},
	{
		variable: "RUNNEL_MAX_LEN", value: "500", byDefault: int64(50_000), byEnv: int64(500), inApp: int64(400), inOwn: int64(300),
		setApp: func(o *runnel.Options, _ *runnel.StreamOptions, _ *runnel.ProcessorOptions) { o.Stream.MaxLen = 400 },
		setOwn: func(_ *runnel.Options, s *runnel.StreamOptions, _ *runnel.ProcessorOptions) { s.MaxLen = 300 },
		see:    func(t *testing.T, a *runnel.App) any { return metaOf(t, a).Meta.MaxLen },
	},
}

func TestCodeGoesBeforeEnvironmentGoesBeforeDefault(t *testing.T) {
	for _, tt := range precedences {
		t.Run(tt.variable, func(t *testing.T) {
			check := func(what string, want any, app *runnel.Options, s *runnel.StreamOptions, p *runnel.ProcessorOptions) {
				t.Helper()
				if got := tt.see(t, settled(app, s, p)); got != want {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			var app runnel.Options
			var s runnel.StreamOptions
			var p runnel.ProcessorOptions
			check("default", tt.byDefault, nil, nil, nil)
			t.Setenv(tt.variable, tt.value)
			check("environment", tt.byEnv, &app, &s, &p)
			tt.setApp(&app, &s, &p)
			check("app's options", tt.inApp, &app, &s, &p)
			tt.setOwn(&app, &s, &p)
			check("own options", tt.inOwn, &app, &s, &p)
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
		"RUNNEL_PREFETCH": "1.5", "RUNNEL_PREFETCH_BYTES": "8M", "RUNNEL_READ_CONNS": "65", "RUNNEL_TIMEOUT": "-1s", "RUNNEL_MAX_RECORD": "64MiB", "RUNNEL_WORKER_NAME": "w\x1b]0;X\a",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			// Also where code has overruled it: it would surprise later.
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
