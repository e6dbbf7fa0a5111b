package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// A Machine describes what the figures depend on.
type Machine struct {
	CPU    string   `json:"cpu"`
	Cores  int      `json:"cores"`
	Memory string   `json:"memory"`
	Kernel string   `json:"kernel"`
	Go     string   `json:"go"`
	Redis  string   `json:"redis"`
	Commit string   `json:"commit"` // of Runnel
	Peers  []string `json:"peers"`  // modules with their versions
}

// peers are the modules that Runnel is compared with.
var peers = []string{
	"github.com/redis/go-redis/v9",
	"github.com/ThreeDotsLabs/watermill-redisstream",
	"github.com/ThreeDotsLabs/watermill",
	"github.com/hibiken/asynq",
	"github.com/robinjoseph08/redisqueue/v2",
}

// machine describes this one. What cannot be found out is "unknown".
func machine(ctx context.Context) Machine {
	m := Machine{
		CPU:   procField("/proc/cpuinfo", "model name"),
		Cores: runtime.NumCPU(), Memory: procField("/proc/meminfo", "MemTotal"),
		Kernel: output(ctx, "uname", "-sr"), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Redis: output(ctx, "redis-server", "--version"), Commit: output(ctx, "git", "rev-parse", "--short=12", "HEAD"),
	}
	if kb, err := strconv.ParseFloat(strings.TrimSuffix(m.Memory, " kB"), 64); err == nil {
		m.Memory = fmt.Sprintf("%.1f GiB", kb/(1<<20))
	}
	for _, field := range strings.Fields(m.Redis) {
		if version, ok := strings.CutPrefix(field, "v="); ok {
			m.Redis = version
		}
	}
	if output(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs/benchmarks") != "unknown" {
		m.Commit += " with changes"
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, path := range peers {
			for _, d := range info.Deps {
				if d.Path == path {
					m.Peers = append(m.Peers, strings.TrimPrefix(path, "github.com/")+" "+d.Version)
				}
			}
		}
	}
	return m
}

// procField is a field of a file of lines "name: value".
func procField(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func output(ctx context.Context, name string, args ...string) string {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil || len(strings.TrimSpace(string(text))) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func (m Machine) markdown(b *strings.Builder) {
	b.WriteString("| | |\n|---|---|\n")
	for _, row := range [][2]string{
		{"CPU", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)}, {"memory", m.Memory}, {"kernel", m.Kernel},
		{"Go", m.Go}, {"redis-server", m.Redis}, {"runnel", m.Commit}, {"others", strings.Join(m.Peers, "<br>")},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row[0], row[1])
	}
}
