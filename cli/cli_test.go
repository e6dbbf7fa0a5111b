package cli

import (
	"strings"
	"testing"
)

func TestUsageErrors(t *testing.T) {
	tests := []struct{ name, args, err string }{
		{"no command", "", "Usage:"},
		{"unknown command", "nope", `unknown command "nope"; see`},
		{"unknown subcommand", "processor nope", `unknown command "nope"; there is ls, info, move, reset, rm`},
		{"misspelled command", "stauts", `unknown command "stauts", did you mean status?; see`},
		{"misspelled group", "procesor ls", `unknown command "procesor", did you mean processor?`},
		{"misspelled subcommand", "dead rety orders", `unknown command "rety", did you mean retry?; there is`},
		{"unknown short flag", "status -x", "unknown flag -x"},
		{"bad duration", "send orders {} --after soon", `--after "soon" is no duration, such as 10s, 5m or 1h30m; see`},
		{"bad number", "check --max-lag many", `--max-lag "many" is no whole number; see`},
		{"bad truth value", "worker --dev=maybe", `--dev "maybe" is no truth value`},
		{"bad address", "worker --http 9090", `--http "9090" is no address with a port, such as :9090 or 127.0.0.1:9090`},
		{"no subcommand", "processor", "a command is needed: ls, info, move, reset, rm"},
		{"number below 0", "send orders -5", "unknown flag -5: behind -- a number below 0 is an argument; see"},
		{"no shell", "completion", "for which shell? bash, zsh, fish or powershell; see"},
		{"unknown shell", "completion csh", "for which shell?"},
		{"too many shells", "completion bash zsh", `unknown command "zsh" for`},
		{"one dash", "worker -dev", "unknown flag -d"},
		{"unknown flag", "send orders {} --kee x", "unknown flag --kee; see"},
		{"unknown global flag", "--kee send", "unknown flag --kee"},
		{"flag of another command", "status --key x", "unknown flag --key"},
		{"missing value", "send orders {} --key", "flag --key needs a value; see"},
		{"too few for send", "send orders", "not 1 arguments"},
		{"too many for send", "send orders {} {}", "not 3 arguments"},
		{"too few for sendmany", "sendmany orders", "at least one file"},
		{"too many for status", "status a b", `unexpected argument "b"`},
		{"argument of worker", "worker ./cmd/shop", `unexpected argument "./cmd/shop"`},
		{"argument of version", "version 1", `unexpected argument "1"`},
		{"unknown stream", "send nope {}", `no stream "nope"; it has orders; see`},
		{"output", "status --output xml", `--output "xml" is none of text, wide, json`},
		{"log format", "status --log-format xml", `--log-format "xml" is none of text, json`},
		{"log level", "status --log-level loud", `--log-level "loud" is none of`},
		{"dev and URL", "worker --dev --redis-url redis://127.0.0.1:1", "--dev and --redis-url exclude each other"},
		{"no position", "processor reset orders/printer", "say where with one of --to and --import, or --export alone"},
		{"bad position", "processor reset orders/printer --to yesterday", `"yesterday" is none of start, end, an entry ID`},
		{"position too large", "processor reset orders/printer --to 18446744073709551616-0", "too large"},
		{"no processor", "processor reset orders --to end", "say STREAM/PROCESSOR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t.Context(), newShopApp(), "", strings.Fields(tt.args)...).want(t, 2, "", tt.err)
		})
	}
	run(t.Context(), newShopApp(), "", "").want(t, 2, "", `unknown command ""; see`)
}

func TestUsageErrorsWithoutTypes(t *testing.T) {
	tests := []struct{ name, args, err string }{
		{"no app", "status", "say --app NAME or set RUNNEL_APP"},
		{"bad name", "status --app a.b", `"a.b"`},
		{"no package", "worker", "which package?"},
		{"two packages", "worker ./a ./b", "one package"},
		{"app and package", "worker ./a --app shop", "--app"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t.Context(), nil, "", strings.Fields(tt.args)...).want(t, 2, "", tt.err)
		})
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, typed := range []bool{true, false} {
		app := newShopApp()
		if !typed {
			app = nil
		}
		for _, command := range []string{"worker", "send", "sendmany", "status", "processor", "processor reset", "pause", "unblock", "rules", "rules ls", "version"} {
			for _, args := range []string{command + " --help", "--help " + command, "help " + command, command + " -h"} {
				r := run(t.Context(), app, "", strings.Fields(args)...)
				r.want(t, 0, "Examples:", "")
				for _, want := range []string{"Usage:", "--redis-url", "--output", command + " "} {
					if !strings.Contains(r.out, want) {
						t.Errorf("%s: no %q in\n%s", args, want, r.out)
					}
				}
				if strings.Contains(r.out, "PROG") {
					t.Errorf("%s: PROG in\n%s", args, r.out)
				}
			}
		}
	}
	run(t.Context(), newShopApp(), "", "--help").want(t, 0, "sendmany", "")
}
