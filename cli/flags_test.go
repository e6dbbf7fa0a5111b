package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFlagsWorkEverywhereOfEveryCommand(t *testing.T) {
	s := owned(t, 4)
	path := file(t, "a.ndjson", jsonLines(2))
	for _, tt := range []struct{ command, args, flag string }{
		{"send", `orders {"customer":"ada"}`, "--output json"},
		{"send", `orders {"customer":"ada"}`, "--output=json"},
		{"send", `orders {"customer":"ada"}`, "--key eve --output json"},
		{"sendmany", "orders " + path, "--output json"},
		{"sendmany", "orders " + path, "--stop-on-error --output json"},
		{"status", "orders/printer", "--output json"},
		{"processor reset", "orders/printer", "--to start --yes --output json"},
		{"pause", "orders/printer", "--partition 1 --why repair --for 1m --output json"},
		{"resume", "orders/printer", "--partition 1 --output json"},
		{"rules ls", "", "--output json"},
		{"parked ls", "orders/printer", "--key ada --partition 1 --output json"},
		{"parked retry", "orders/printer", "--limit 1 --output json"},
		{"parked drop", "orders/printer", "--all --output json"},
		{"dead ls", "orders/printer", "--since 1h --error text --output json"},
		{"dead show", "orders/printer", "--id 1/1-1 --output json"},
		{"dead replay", "orders/printer", "--dry-run --output json"},
		{"dead drop", "orders/printer", "--all --output=json"},
		{"version", "", "--output json"},
	} {
		for _, line := range []string{
			"--output json " + tt.command + " " + tt.args + " " + tt.flag,
			tt.command + " " + tt.flag + " " + tt.args,
			tt.command + " " + tt.args + " " + tt.flag,
		} {
			for name, run := range map[string]func(...string) result{"app": s.run, "runnel": s.untyped} {
				r := run(strings.Fields(line)...)
				if r.code != 0 || !json.Valid([]byte(r.out)) {
					t.Errorf("%s: %s: %+v", name, line, r)
				}
			}
		}
	}
}

// Flags take precedence over their environment variables.
func TestFlagsGoBeforeTheEnvironment(t *testing.T) {
	s := newShop(t, nil)
	s.send(1)
	t.Setenv("RUNNEL_LOG_FORMAT", "json")
	t.Setenv("RUNNEL_LOG_LEVEL", "error")
	w := s.start("worker", "--log-level", "debug")
	eventually(t, "ready", func() bool { return s.app.Ready() == nil })
	if r := w.stop(); !strings.Contains(r.err, `{"time":`) || !strings.Contains(r.err, `"level":"INFO"`) {
		t.Errorf("the log is not JSON of all levels:\n%s", r.err)
	}
	t.Setenv("RUNNEL_REDIS_URL", "redis://127.0.0.1:1")
	s.untyped("status").want(t, 1, "", "no Redis at 127.0.0.1:1")
	s.untyped("status", "orders", "--redis-url", s.url).want(t, 0, "stream orders", "")
	t.Setenv("RUNNEL_LOG_LEVEL", "loud")
	s.untyped("status", "--redis-url", s.url).want(t, 1, "", `environment variable RUNNEL_LOG_LEVEL="loud"`)
	t.Setenv("RUNNEL_LOG_LEVEL", "")
	t.Setenv("RUNNEL_APP", "shop")
	run(t.Context(), nil, "", "status", "--redis-url", s.url).want(t, 0, "app shop", "")
}
