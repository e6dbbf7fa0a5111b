// Sessions tells how users come and go: clicks of a user without a longer pause are a session.
// The open ones are rows of a table, which end when the pause is over: then the session is passed
// on, in one step with the end of its row. Package window does the same in fewer lines.
//
//	go run ./examples/sessions worker --dev
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

// pause ends a session. It is short here, so that you see some.
const pause = 2 * time.Second

type Click struct {
	User string `json:"user"`
	Page string `json:"page"`
}

type Session struct {
	User   string    `json:"user"`
	Clicks int       `json:"clicks"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

type site struct {
	clicks   *runnel.Stream[Click]
	sessions *runnel.Stream[Session] // that are closed
	open     *runnel.Table[Session]
}

// register adds the streams to app, and the processor that makes sessions of clicks.
func register(app *runnel.App) site {
	s := site{
		clicks:   runnel.NewStream(app, "clicks", func(c Click) string { return c.User }, nil),
		sessions: runnel.NewStream(app, "sessions", func(s Session) string { return s.User }, nil),
	}
	s.open = runnel.NewTable[Session](s.clicks, "open", &runnel.TableOptions{TTL: pause})
	s.open.OnExpire(func(ctx context.Context, _ string, session Session) error { return s.sessions.Emit(ctx, session) })
	s.clicks.Process("sessions", s.follow, &runnel.ProcessorOptions{Tables: []runnel.State{s.open}})
	return s
}

// follow goes by the time at which clicks were appended: a worker that was away changes nothing.
func (s site) follow(owned context.Context, events *runnel.Events[Click]) error {
	rows := s.open.Rows(owned)
	for event, click := range events.All() {
		at := event.Appended()
		rows.Update(click.User, func(session Session) Session {
			if session.Clicks == 0 {
				session = Session{User: click.User, First: at}
			}
			session.Clicks, session.Last = session.Clicks+1, at
			return session
		})
	}
	return nil
}

func main() {
	app := runnel.New("site", nil)
	s := register(app)
	s.sessions.Process("print", runnel.Each(func(_ context.Context, _ *runnel.Event, s Session) error {
		fmt.Printf("a session of %s: %d clicks in %v\n", s.User, s.Clicks, s.Last.Sub(s.First))
		return nil
	}), nil)
	app.Every("users", pause+time.Second, func(ctx context.Context) error {
		return s.clicks.Send(ctx, Click{"ada", "/"}, Click{"ada", "/hats"}, Click{"bob", "/"})
	}, nil)
	cli.Run(app)
}
