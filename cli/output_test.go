package cli

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
)

// fullDisk is a stdout that fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func unwritable(t *testing.T, app *runnel.App, args ...string) result {
	var errs bytes.Buffer
	code := Main(t.Context(), app, args, strings.NewReader(`{"customer":"ada"}`), fullDisk{}, &errs)
	return result{code, "", errs.String()}
}

func TestCommandsSayWhatTheyDidWhereTheirOutputCannotBeWritten(t *testing.T) {
	s, ada, bob := two(t, 12)
	ada.bury("ada", "no ink")
	bob.park("bob")
	but := ", but its output could not be written: no space left on device\n"
	for _, tt := range []struct{ args, did string }{
		{`send orders {"customer":"ada"}`, `sent as orders 0/\d+-\d+`},
		{`send orders {"customer":"ada"} -o json`, `sent as orders 0/\d+-\d+`},
		{`send orders {"customer":"ada"} --after 1h`, `sent as orders 0/\d+`},
		{`sendmany orders -`, `sent 1, failed 0`},
		{`pause orders/printer`, `pause of processor:orders/printer by .*`},
		{`resume orders/printer`, `the pause of processor:orders/printer is removed`},
		{`parked retry orders/printer`, `\d events? due now`},
		{`parked drop orders/printer --all --yes`, `\d events? dropped`},
		{`dead retry orders/printer --limit 1`, `1 dead letter retried`},
		{`dead replay orders/printer --limit 1 --yes`, `1 dead letter replayed`},
		{`dead drop orders/printer --limit 1 --yes`, `1 dead letter dropped`},
	} {
		r := unwritable(t, s.app, strings.Fields(tt.args)...)
		if r.code != 1 {
			t.Errorf("%s: exit code %d", tt.args, r.code)
		}
		if !regexp.MustCompile(`: ` + tt.did + but + `$`).MatchString(r.err) {
			t.Errorf("%s: %s", tt.args, r.err)
		}
	}
}

func TestNoCommandEndsWellWhoseOutputCannotBeWritten(t *testing.T) {
	s := newShop(t, nil)
	s.run("send", "orders", `{"customer":"ada"}`).want(t, 0, "orders", "")
	for _, args := range []string{"--help", "send --help", "version", "completion bash", "status", "check", "processor ls", "dead --help", "tail orders"} {
		r := unwritable(t, s.app, strings.Fields(args)...)
		if r.code != 1 || strings.Count(r.err, "no space left on device") != 1 {
			t.Errorf("%s: exit code %d, %s", args, r.code, r.err)
		}
	}
}
