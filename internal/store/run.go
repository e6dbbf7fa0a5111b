package store

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/delayqueue"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Lib is Lua that scripts of an extension may use.
type Lib struct{ source string }

// What scripts of extensions share with those of this package; each file says what its functions do.
var (
	Prelude = Lib{source("prelude")}
	Fence   = Lib{source("fence")}
	Times   = Lib{delayqueue.Times}
	Wake    = Lib{source("wake")}
)

// A Script is a script of an extension. It handles at most 128 items, so that it does not hold the
// server for longer than 20 ms, and computes no name of a key.
type Script struct{ script *redis.Script }

// NewScript returns a script behind the libraries that it uses.
func NewScript(text string, libs ...Lib) *Script {
	var all strings.Builder
	for _, l := range libs {
		all.WriteString(l.source)
	}
	s := redis.NewScript(all.String() + text)
	return &Script{s}
}

// ReadScripts returns scripts of an extension by name: the files of a directory lua, each behind the
// libraries and behind the file of them that the others share.
func ReadScripts(files embed.FS, shared string, libs ...Lib) map[string]*Script {
	read := func(path string) string {
		text, err := files.ReadFile(path)
		if err != nil {
			panic(err) // the name of what is shared is wrong
		}
		return string(text)
	}
	paths, _ := fs.Glob(files, "lua/*.lua") // it is no bad pattern
	scripts := map[string]*Script{}
	for _, p := range paths {
		scripts[strings.TrimSuffix(path.Base(p), ".lua")] = NewScript(read("lua/"+shared+".lua")+read(p), libs...)
	}
	return scripts
}

// A ScriptCall is a call of a script, and what Run makes of it.
type ScriptCall struct {
	Script  *Script
	Keys    []string // in one slot
	Args    []any
	Confirm bool // by as many replicas as the app's Durability says

	Reply any // what the script returned, nil with an error other than ErrNotReplicated
	// Err is the error: ErrFenced, ErrFull, redisconn.ErrWrongType, redisconn.ErrUnknownOutcome if the
	// script may have run, redisconn.ErrNotReplicated if it has, or the server's.
	Err error
}

// callsPerTrip is how many scripts of extensions a round trip has at most: others of the server's
// clients wait for all of them.
const callsPerTrip = 128

// Run runs calls in as few round trips as there are nodes with their slots, and sets Reply and Err of
// each. It repeats what was certainly not executed: the script was unknown, or its slot elsewhere; for a
// second, if the slot is on its way. What has an unknown outcome it never repeats: only the caller knows whether that does harm. It
// blocks until all is answered, and may be called concurrently.
func (c *Client) Run(ctx context.Context, calls ...*ScriptCall) {
	for from := 0; from < len(calls); from += callsPerTrip {
		c.run(ctx, calls[from:min(from+callsPerTrip, len(calls))])
	}
}

func (c *Client) run(ctx context.Context, calls []*ScriptCall) {
	sent, confirm := make([]*redisconn.Call, len(calls)), false
	for i, call := range calls {
		sent[i] = redisconn.ScriptCall(ctx, call.Script.script, call.Keys, call.Args...)
		confirm = confirm || call.Confirm
	}
	var weak error
	if confirm {
		weak = c.Durably(ctx, sent)
	} else {
		redisconn.Pipeline(ctx, c.NoRetry, sent)
	}
	for i, call := range calls {
		call.Reply, call.Err = sent[i].Reply.Result()
		if errors.Is(call.Err, redis.Nil) {
			call.Err = nil
		}
		switch call.Err = classify(call.Err); {
		case call.Err != nil: // go-redis may have a reply all the same
			call.Reply = nil
		case call.Confirm:
			call.Err = weak
		}
	}
}
