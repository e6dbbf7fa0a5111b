// Names and options that cannot be panic when they are registered; Start says where a new
// processor begins.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
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
		"option Reads: unknown value 9":               func() { process(&runnel.ProcessorOptions{Reads: 9}) },
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

// Where a processor begins that never ran, by partition; one that ran goes on.
func TestStartSaysWhereANewProcessorBegins(t *testing.T) {
	for name, tt := range map[string]struct {
		start func(ids []string) string
		want  string
	}{
		"default":   {func([]string) string { return "" }, "[0 4 8 12 16]"},
		"beginning": {func([]string) string { return runnel.StartBeginning }, "[0 4 8 12 16]"},
		"end":       {func([]string) string { return runnel.StartEnd }, "[16]"},
		"an ID":     {func(ids []string) string { return ids[1] }, "[8 12 16]"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, url string, _ *redis.Client) {
				_, producer := full(t, url, runnel.Reject, nil)
				var ids []string
				for n := range 4 {
					sent, err := producer.SendEvents(t.Context(), runnel.Outgoing[item]{Record: item{n * fullParts}})
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, sent[0].ID)
				}
				var seen numbered
				for run := range 2 { // the second time it has run before
					app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler),
						Processor: runnel.ProcessorOptions{Start: tt.start(ids)}})
					s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: fullParts,
						Partitioner: &runnel.Partitioner{Name: "digit", Func: func(string, int) int { return 0 }}})
					s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
						seen.see(e, i)
						return nil
					}), nil)
					stop := running(t, app)
					if run == 0 {
						if err := producer.Send(t.Context(), item{16}); err != nil {
							t.Fatal(err)
						}
						redistest.Eventually(t, "the last one", func() bool { all := seen.of(0); return len(all) > 0 && all[len(all)-1] == 16 })
					}
					stop()
					app.Close()
				}
				if got := fmt.Sprint(seen.of(0)); got != tt.want {
					t.Errorf("processed %s, want %s", got, tt.want)
				}
			})
		})
	}
}
