package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestDiagnoseClocks(t *testing.T) {
	server, clock := redistest.StartWithClock(t)
	rdb := server.Client(t)
	look := func(level, found string) {
		t.Helper()
		d := diagnose(t, redis.Options{Addr: server.Addr()})["clock"]
		if d.Level != level || !strings.Contains(d.Found, found) || (level != "ok") != strings.Contains(d.Advice, "slew") {
			t.Errorf("got %+v, want %s: %s", d, level, found)
		}
	}
	look("ok", "off from the one here")
	clock.Set(time.Hour)
	look("warning", "off from the one here")
	clock.Set(-time.Hour)
	look("warning", "that of Redis was set back, by ")
	if err := rdb.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	look("warning", "that of Redis is -")
}
