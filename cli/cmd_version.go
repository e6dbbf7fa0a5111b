package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const (
	flagVersion = "version"
	module      = "github.com/runnel-go/runnel"
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
		Program: p.name, Version: "unknown", Runnel: "unknown",
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = moduleVersion(&info.Main)
	if info.Main.Path == module {
		v.Runnel = v.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			v.Runnel = moduleVersion(dep)
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}

func moduleVersion(m *debug.Module) string {
	if m.Replace != nil {
		m = m.Replace
	}
	if m.Version == "" {
		return "(devel)"
	}
	return m.Version
}
