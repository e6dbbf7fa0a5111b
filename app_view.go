package runnel

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/worker"
)

func init() {
	appview.Of = func(app any) *appview.View { return appOf(app).registry() }
	appview.TableOf = func(table any) (app any, stream, name string) {
		t := table.(State).state()
		return t.of.app, t.of.name, t.name
	}
	extension.Register = func(app any, e *extension.Extension) { appOf(app).extend(e) }
	extension.Of = func(app any) []*extension.Extension {
		a := appOf(app)
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.Clone(a.extensions)
	}
	extension.Declare = func(stream any, kind string, parts func() []string) {
		s, ok := stream.(interface{ extended(string, func() []string) })
		if !ok {
			panic(fmt.Sprintf("runnel: %T is no *runnel.Stream", stream))
		}
		s.extended(kind, parts)
	}
}

func appOf(app any) *App {
	a, ok := app.(*App)
	if !ok || a == nil {
		panic(fmt.Sprintf("runnel: %T is no *runnel.App", app))
	}
	return a
}

// extend registers an extension.
func (a *App) extend(e *extension.Extension) {
	a.register(func() {
		if err := e.Check(); err != nil {
			panic("runnel: " + err.Error())
		}
		if slices.ContainsFunc(a.extensions, func(o *extension.Extension) bool { return o.Name == e.Name }) {
			panic("runnel: app " + a.name + ": extension " + e.Name + " is registered already")
		}
		a.extensions = append(a.extensions, e)
	})
}

// registry is the app as the packages above this one see it.
func (a *App) registry() *appview.View {
	return &appview.View{
		App:     a.name,
		Streams: a.describeStreams,
		Processors: func() ([]*worker.Processor, error) {
			o, err := a.settings()
			if err != nil {
				return nil, err
			}
			logger, err := o.logger()
			if err != nil {
				return nil, err
			}
			return a.build(logger)
		},
		Client:    a.redis,
		Settings:  a.viewSettings,
		Inherited: a.inherited,
		Stats: func() *worker.Stats {
			if w := a.current.Load(); w != nil {
				return w.Stats()
			}
			return nil
		},
		KeepLatencies: func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.latencies = true
		},
		Override: func(o appview.Overrides) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if o.RedisURL != "" {
				a.opts.RedisURL, a.opts.Redis, a.inside = o.RedisURL, nil, o.Inside
			}
			a.opts.LogLevel = cmp.Or(o.LogLevel, a.opts.LogLevel)
			a.opts.LogFormat = cmp.Or(o.LogFormat, a.opts.LogFormat)
			a.opts.Logger = cmp.Or(o.Logger, a.opts.Logger)
			a.resolved = nil
		},
		Intercept: func(to appview.Sender) (end func()) {
			set := func(to appview.Sender) {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.intercepted = to
			}
			a.intercepting.Lock()
			set(to)
			return func() {
				set(nil)
				a.intercepting.Unlock()
			}
		},
	}
}

func (a *App) viewSettings() (*appview.Settings, error) {
	o, err := a.settings()
	if err != nil {
		return nil, err
	}
	return &appview.Settings{LogLevel: o.LogLevel, LogFormat: o.LogFormat, Logger: o.Logger}, nil
}

// inherited is what processors inherit.
func (a *App) inherited() (*appview.Inherited, error) {
	a.mu.Lock()
	given := a.opts.Processor
	a.mu.Unlock()
	env := newEnvironment()
	o := env.processor(ProcessorOptions{}, given)
	return &appview.Inherited{
		Timeout: max(o.Timeout, 0), Grace: o.Grace,
		Retry: func(own any, attempts int) (*retryqueue.Retry, error) {
			r, _ := own.(*Retry)
			r = cmp.Or(r, o.Retry, &Retry{Max: attempts})
			return r.build(), r.check()
		},
	}, env.err()
}

func (a *App) describeStreams() ([]*appview.Stream, error) {
	a.mu.Lock()
	names := sortedKeys(a.streams)
	var out []*appview.Stream
	streams := a.streams
	a.mu.Unlock()
	for _, name := range names {
		s, err := streams[name].describe()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// build makes every registered processor, its options resolved.
func (a *App) build(logger *slog.Logger) ([]*worker.Processor, error) {
	a.mu.Lock()
	regs, inherited := slices.Clone(a.processors), a.opts.Processor
	a.mu.Unlock()
	o, err := a.settings()
	if err != nil {
		return nil, err
	}
	var out []*worker.Processor
	for _, r := range regs {
		env, from := newEnvironment(), inherited
		if kind, _ := r.of.kindOf(); kind != "" { // its events are no records of the app
			from.Middleware, from.Retry = nil, nil
		}
		effective := env.processor(r.opts, from)
		if err := env.err(); err != nil {
			return nil, err
		}
		if effective.anyConns && o.clustered() {
			effective.ReadConns = clusterReadConns
		}
		p, err := r.build(&effective, logger.With("app", a.name, "worker", o.WorkerName, "stream", r.stream, "processor", r.name), o.WorkerName)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// selectProcessors returns the named processors, all of them if names is empty.
func selectProcessors(all []*worker.Processor, names []string) ([]*worker.Processor, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []*worker.Processor
	for _, name := range names {
		found := false
		for _, p := range all {
			if name == p.Name || name == p.Stream+"/"+p.Name {
				found = true
				if !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
		if !found {
			var known []string
			for _, p := range all {
				known = append(known, p.Stream+"/"+p.Name)
			}
			return nil, fmt.Errorf("no processor %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return out, nil
}
