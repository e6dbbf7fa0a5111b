// Package extension is where a feature above the core, such as stage, meets the command line, the metrics and
// the dashboard: it describes itself as an Extension, and they show what it describes. docs/extensions.md builds
// one. Nothing here names a library of theirs.
package extension

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// Register adds an extension to a *runnel.App. The root package sets it. It panics after Run, on a second
// extension of the same name, and where Check returns an error.
var Register func(app any, e *Extension)

// Of returns the extensions that are registered with a *runnel.App, in that order. The root package sets it.
var Of func(app any) []*Extension

// An Extension is what a feature shows to operators. All fields but Name are optional. Its functions get the
// client of the app, may be called concurrently, and change nothing but in commands and actions.
type Extension struct {
	Name  string // its command group; the prefix of its metrics; its page: lower-case letters and digits
	Usage string // of its command group

	// Present reports whether Redis has anything of it. It decides about the surfaces of an extension that is
	// known and not registered.
	Present  func(ctx context.Context, c *store.Client) (bool, error)
	Absent   string // what to do where there is nothing of it, for errors
	Commands []Command
	Nouns    map[string]string // first words of calls that have two, such as topic of "topic rm NAME": what they are for
	// Targets returns the parts of an owner, or of all owners for "", that pause, parked and dead act on beside
	// the processors of the core. It returns none for an owner that is not the extension's.
	Targets func(ctx context.Context, c *store.Client, owner string) ([]Target, error)
	Metrics []*Metric
	// Gather calls add with the values of the metrics of the app as a whole, or else with those of this process.
	Gather func(ctx context.Context, c *store.Client, ofApp bool, add func(Sample)) error
	// Findings returns what check and doctor report.
	Findings func(ctx context.Context, c *store.Client, limits inspect.Limits) ([]inspect.Finding, error)
	// Status returns the lines of status, two at most: others are cut.
	Status func(ctx context.Context, c *store.Client) ([]string, error)
	Page   *Page

	own any // what its package keeps by app: see Own
}

// statusLines is how many lines of status an extension has.
const statusLines = 2

// Own returns what the package of T keeps for an app. The first call for an app creates it together with the
// extension, and registers that. It panics where Register would.
func Own[T any](app any, create func() (*T, *Extension)) *T {
	for _, e := range Of(app) {
		if own, ok := e.own.(*T); ok {
			return own
		}
	}
	own, e := create()
	e.own = own
	Register(app, e)
	return own
}

var plain = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// Check returns what is wrong with the description.
func (e *Extension) Check() error {
	if !plain.MatchString(e.Name) {
		return fmt.Errorf("extension %q: a name is lower-case letters and digits", e.Name)
	}
	for _, m := range e.Metrics {
		if !slices.IsSorted(m.Labels) {
			return fmt.Errorf("extension %s: the labels of metric %s are not in alphabetical order", e.Name, m.Name)
		}
	}
	if len(e.Metrics) > 0 && e.Gather == nil {
		return fmt.Errorf("extension %s: nothing gathers its metrics", e.Name)
	}
	return nil
}

var known struct {
	sync.Mutex
	all []*Extension
}

// Known adds an extension for apps that have not registered one of its name: a program without an app's code
// shows it where Redis has something of it. It panics where Register would.
func Known(e *Extension) {
	known.Lock()
	defer known.Unlock()
	err := e.Check()
	if err == nil && (e.Present == nil || named(known.all, e.Name)) {
		err = fmt.Errorf("extension %s: known already, or without Present", e.Name)
	}
	if err != nil {
		panic("runnel: " + err.Error())
	}
	known.all = append(known.all, e)
}

func named(all []*Extension, name string) bool {
	return slices.ContainsFunc(all, func(e *Extension) bool { return e.Name == name })
}

// An Entry is an extension as one app has it.
type Entry struct {
	*Extension
	Registered bool // by the app's code; else Present decides
}

// All returns the extensions of an app: first the registered ones, then the others that are known. It does no I/O.
// Without an app it returns those that are known.
func All(app any) (all []Entry) {
	var own []*Extension
	if app != nil {
		own = Of(app)
	}
	for _, e := range own {
		all = append(all, Entry{e, true})
	}
	known.Lock()
	defer known.Unlock()
	for _, e := range known.all {
		if !named(own, e.Name) {
			all = append(all, Entry{e, false})
		}
	}
	return all
}

// There reports whether the app has the extension: it is registered, or Redis has something of it.
func (e Entry) There(ctx context.Context, c *store.Client) (bool, error) {
	if e.Registered {
		return true, nil
	}
	there, err := e.Present(ctx, c)
	return there, e.wrap(err)
}

func (e Entry) wrap(err error) error {
	if err == nil || errors.As(err, new(*UsageError)) {
		return err
	}
	return fmt.Errorf("extension %s: %w", e.Name, err)
}

// Active returns the extensions that an app has, by its code or by what is in Redis.
func Active(ctx context.Context, app any, c *store.Client) (active []Entry, err error) {
	for _, e := range All(app) {
		there, err := e.There(ctx, c)
		if err != nil {
			return nil, err
		}
		if there {
			active = append(active, e)
		}
	}
	return active, nil
}

// Findings returns what the extensions of an app find.
func Findings(ctx context.Context, app any, c *store.Client, limits inspect.Limits) (found []inspect.Finding, err error) {
	active, err := Active(ctx, app, c)
	for _, e := range active {
		if e.Extension.Findings == nil {
			continue
		}
		some, err := e.Extension.Findings(ctx, c, limits)
		if err != nil {
			return nil, e.wrap(err)
		}
		found = append(found, some...)
	}
	return found, err
}

// Diagnose returns the findings of an app's extensions as doctor has them: a problem each, or that there is none.
func Diagnose(ctx context.Context, app any, c *store.Client) (out []inspect.Diagnosis, err error) {
	active, err := Active(ctx, app, c)
	for _, e := range active {
		if e.Extension.Findings == nil {
			continue
		}
		some, err := e.Extension.Findings(ctx, c, inspect.Limits{})
		if err != nil {
			return nil, e.wrap(err)
		}
		for _, f := range some {
			out = append(out, inspect.Diagnosis{Check: e.Name, Level: inspect.LevelProblem, Found: f.Text})
		}
		if len(some) == 0 {
			out = append(out, inspect.Diagnosis{Check: e.Name, Level: inspect.LevelOK, Found: "it finds nothing"})
		}
	}
	return out, err
}

// Status returns the lines of status by extension. An error takes the place of the lines.
func Status(ctx context.Context, app any, c *store.Client) map[string][]string {
	var lines map[string][]string
	for _, e := range All(app) {
		there, err := e.There(ctx, c)
		if !there && err == nil || e.Extension.Status == nil {
			continue
		}
		var some []string
		if err == nil {
			some, err = e.Extension.Status(ctx, c)
		}
		if err != nil {
			some = []string{fmt.Sprintf("extension %s cannot be read: %v", e.Name, err)}
		}
		if lines == nil {
			lines = map[string][]string{}
		}
		lines[e.Name] = some[:min(len(some), statusLines)]
	}
	return lines
}

// A UsageError is a mistake in a request: in the arguments or flags of a command, or in what a page asked for.
type UsageError struct{ text string }

// Error returns the mistake.
func (e *UsageError) Error() string { return e.text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
