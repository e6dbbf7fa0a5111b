package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/words"
)

const (
	flagVersion = "version"
	module      = words.Module
)

// versions is what `version` prints.
type versions struct {
	Program  string `json:"program"`
	Version  string `json:"version"`            // of the program's module
	Revision string `json:"revision,omitempty"` // of its source
	Runnel   string `json:"runnel"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(p *program) *cobra.Command {
	return p.plain("version", "print the versions of the program, of runnel and of Go", nil, p.runVersion, "PROG version", "PROG version --output json")
}

func (p *program) runVersion(c *call) error {
	v := p.versions()
	program := v.Program + " " + v.Version
	if v.Revision != "" {
		program += " (" + v.Revision + ")"
	}
	return newOutput(c, p.stdout).line(v, "%s, runnel %s, %s %s", program, v.Runnel, v.Go, v.Platform)
}

func (p *program) versions() versions {
	v := versions{
		Program: p.name, Version: "unknown", Runnel: words.Version(),
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = words.VersionOf(&info.Main)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
