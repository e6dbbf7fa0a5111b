package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/store"
)

const devAddr = "127.0.0.1:6379"

// startDev starts an embedded server, makes the app use it, and prints how to
// reach it from a second terminal.
func startDev(s *session, c *call) (*embedded.Server, error) {
	server, err := startEmbedded()
	if err != nil {
		return nil, fmt.Errorf("--dev: %w", err)
	}
	url := "redis://" + server.Addr()
	s.reg.Override(appview.Overrides{RedisURL: url, Inside: true})
	printf(s.stderr, "--dev: a Redis inside this process, at %s; its data is lost on exit\n", server.Addr())
	if os.Getenv("RUNNEL_REDIS_URL") != "" {
		printf(s.stderr, "--dev: the server of RUNNEL_REDIS_URL is not used\n")
	}
	if c.Name() == "worker" {
		if server.Addr() != devAddr {
			printf(s.stderr, "--dev: another server has %s, and this worker shares nothing with it; to share its events, run worker without --dev\n", devAddr)
		}
		what, command := sampleCommand(s.reg)
		printf(s.stderr, "--dev: to %s, type in a second terminal:\n  RUNNEL_REDIS_URL=%s %s %s\n", what, url, programLine(s.name), command)
		printf(s.stderr, "--dev: a second worker, which shares out the partitions with this one:\n  %s worker --redis-url %s\n", programLine(s.name), url)
	} else {
		printf(s.stderr, "--dev: no worker sees it; to reach one that runs with --dev, set RUNNEL_REDIS_URL as that one says\n")
	}
	return server, nil
}

// startEmbedded listens at the default address of clients, or on a free port. It first tries to
// connect there: a server on all addresses would share its port with one on the loopback.
func startEmbedded() (*embedded.Server, error) {
	conn, err := net.DialTimeout("tcp", devAddr, time.Second)
	if err != nil {
		if server, err := embedded.Start(devAddr); err == nil {
			return server, nil
		}
	} else {
		conn.Close()
	}
	return embedded.Start("127.0.0.1:0")
}

// sampleCommand is a command to try, and what it does: a send to the stream of the first registered processor,
// or, of an app whose streams all are an extension's, status.
func sampleCommand(app *appview.View) (what, command string) {
	streams, err := app.Streams()
	all := len(streams)
	streams = slices.DeleteFunc(streams, func(st *appview.Stream) bool { return store.InternalKind(st.Meta.Kind) })
	switch {
	case all > 0 && len(streams) == 0:
		return "look", "status"
	case err != nil || len(streams) == 0:
		return "send", "send STREAM '<json>'"
	}
	to := streams[0]
	if processors, err := app.Processors(); err == nil && len(processors) > 0 {
		i := slices.IndexFunc(streams, func(st *appview.Stream) bool { return st.Name == processors[0].Stream })
		to = streams[max(i, 0)]
	}
	sample, err := to.Sample()
	if err != nil {
		sample = []byte("<json>")
	}
	return "send", "send " + to.Name + " " + quote(string(sample))
}

// programLine is the command line that runs this program again. A binary of `go run` is removed
// when it ends, but its package can be run again.
func programLine(name string) string {
	exe := os.Args[0]
	info, ok := debug.ReadBuildInfo()
	if ok && strings.Contains(filepath.ToSlash(exe), "/go-build") && info.Path != "command-line-arguments" {
		return "go run " + info.Path
	}
	if strings.ContainsRune(exe, filepath.Separator) {
		return quote(exe)
	}
	return name
}

// quote quotes for a POSIX shell, where that is needed.
func quote(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:=@%+,", r)
	}
	if s != "" && strings.TrimFunc(s, safe) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
