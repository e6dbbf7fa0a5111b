package redistest

import (
	"os/exec"
	"regexp"
	"testing"
)

var versionLine = regexp.MustCompile(`^(Redis|Valkey) server v=(\S+)`)

// Version is the name and number of the redis-server in PATH as the program tells them, such
// as "Redis 7.0.15" or "Valkey 8.1.1".
func Version(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("redis-server", "--version").Output()
	m := versionLine.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("redis-server --version: %q, %v", out, err)
	}
	return string(m[1]) + " " + string(m[2])
}
