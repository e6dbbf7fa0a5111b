package inspect

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/rstream"
)

// Whatever a script calls is tried.
func TestDoctorTriesWhatScriptsCall(t *testing.T) {
	c, err := rstream.Open(rstream.Options{URL: "redis://127.0.0.1:1", Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tried := map[string]bool{"HSET": true, "INCR": true} // by writes
	for _, p := range (&doctor{c: c}).probes() {
		tried[p.right] = true
	}
	files, _ := filepath.Glob("../rstream/lua/*.lua")
	more, _ := filepath.Glob("../due/lua/*.lua")
	called := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?`)
	for _, path := range append(files, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range called.FindAllStringSubmatch(string(text), -1) {
			if right := strings.TrimSpace(m[1] + " " + m[2]); !tried[right] && !tried[m[1]] {
				t.Errorf("%s calls %s, which doctor does not try", path, right)
			}
		}
	}
	if len(files) < 20 || len(more) < 1 {
		t.Errorf("%d and %d scripts", len(files), len(more))
	}
}
