// Package admin controls what an app runs: operators pause, and administrators block. The
// commands pause, resume, block, unblock and rules do the same.
//
//	client := admin.New(app)
//	err := client.Pause(ctx, admin.ProcessorScope("orders", "printer"), &admin.RuleOptions{Why: "no paper"})
//
// A rule says what does not run: an operator pauses, an administrator blocks, each the app, a
// stream, a processor, or one of its partitions. What either covers takes no event and starts
// no call of its function, on every worker within a second and on those that start later;
// locks, reads, heartbeats and rebalances go on, and what is sent meanwhile is processed
// afterwards. Rules are kept in Redis, and by workers that cannot read them any more.
package admin

import (
	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
)

// A Client acts on one app. Its methods may be called concurrently, by any program of the app;
// they block until Redis has answered, and return its errors.
type Client struct{ app *appview.View }

// New returns a Client of app. It does no I/O; the connection is the app's.
func New(app *runnel.App) *Client { return &Client{appview.Of(app)} }
