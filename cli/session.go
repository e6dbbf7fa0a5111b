package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/store"
)

// A session is an app with the flags applied, for one command.
type session struct {
	*program
	app    *runnel.App // of the command; one without streams if the program has no types
	reg    *appview.View
	client *store.Client
	admin  *admin.Client
	far    *progress
	out    output

	stream, processor string // that the first argument names, "" for none
}

// prefix is what a further command for the same app begins with.
func (s *session) prefix() string {
	if s.program.app == nil && os.Getenv(envApp) != s.app.Name() {
		return s.name + " --app " + s.app.Name()
	}
	return s.name
}

// action runs a command in a session.
func (p *program) action(run runner) func(*call) error {
	return func(c *call) error {
		s := &session{program: p, out: newOutput(c, p.stdout)}
		if s.stream = c.arg(0); strings.Contains(c.usage(), "/PROCESSOR") {
			s.stream, s.processor, _ = strings.Cut(s.stream, "/")
		}
		if err := s.open(c); err != nil {
			return err
		}
		if p.app == nil {
			defer s.app.Close()
		}
		if c.Bool(flagDev) {
			server, err := startDev(s, c)
			if err != nil {
				return err
			}
			defer server.Close()
		}
		var err error
		if s.client, err = s.reg.Client(); err != nil {
			return err
		}
		s.far = newProgress(s.stderr)
		s.admin = admin.New(s.app).WithProgress(s.far.of)
		defer s.far.done()
		return run(c.Context(), s, c)
	}
}

// open finds the app and applies the flags.
func (s *session) open(c *call) error {
	s.app = s.program.app
	if s.app == nil {
		name, err := namedApp(c)
		if err != nil {
			return err
		}
		if s.app, err = newApp(name); err != nil {
			return usagef(c, "%w", err)
		}
	}
	s.reg = appview.Of(s.app)
	s.reg.Override(appview.Overrides{
		RedisURL: c.String(flagRedisURL), LogLevel: c.String(flagLogLevel), LogFormat: c.String(flagLogFormat),
	})
	return s.setLogger(c, s.reg)
}

// newApp is runnel.New for a name that a user typed.
func newApp(name string) (app *runnel.App, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return runnel.New(name, nil), nil
}

// connect asks the server once whether it can be used.
func (s *session) connect(ctx context.Context) error {
	err := s.client.Check(ctx)
	if err != nil && ctx.Err() == nil && unreachable(err) {
		return noServer(s.client.Addr(), err)
	}
	return err
}
