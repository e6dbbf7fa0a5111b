package cli

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/inspect"
)

func TestTopWithoutATerminal(t *testing.T) {
	s := owned(t, 10)
	s.send(5)
	r := s.untyped("top", "--every", "100ms")
	r.matches(t, `^app shop, redis \S+, leader -\nPROCESSOR +APPENDED/S +DONE/S +LAG +AGE +OWNED +MEMBERS +PENDING +DELAYED +PARKED +DEAD +LOST +QUARANTINED +HELD +STATE\norders/printer +0 +0 +5 +\S+ +0/2 +0/0 +0 +0 +0 +0 +0 +0 +0 +2 without owner\n$`)
	s.run("top", "orders/printer", "--every", "100ms").matches(t, `(?m)^PARTITION +OWNER +EPOCH +DONE/S +LAG .*\n0 +- +\d{13} +0 +\d .* no owner\n1 +- `)
	for _, what := range []string{"", "orders", "orders/printer"} {
		sample := printed[inspect.Sample](s, append([]string{"top", "--every", "100ms"}, strings.Fields(what)...)...)
		rates := sample.Rates[0].Processors
		if p := sample.App.Streams[0].Processors; len(p) != 1 || p[0].Totals.Lag != 5 || len(rates) != 1 || rates[0].Done == nil || *rates[0].Done != 0 || len(rates[0].Partitions) != 2 {
			t.Errorf("%q: %+v", what, sample)
		}
	}
}

func TestTopMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"top orders printer":      `unexpected argument "printer"`,
		"top --every 99ms":        "--every 99ms is below 100ms",
		"top --redis-url x --dev": "exclude each other",
	} {
		run(t.Context(), newShopApp(), "", strings.Fields(args)...).want(t, 2, "", want)
	}
	s := owned(t, 1)
	s.untyped("top", "oders").want(t, 1, "", `no stream "oders"; it has orders`)
	s.untyped("top", "orders/Printer").want(t, 1, "", `no processor "Printer"; it has printer`)
	run(t.Context(), newShopApp(), "", "top", "--redis-url", "redis://127.0.0.1:1").want(t, 1, "", "no Redis at 127.0.0.1:1")
}
