package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/bench/internal/proc"
)

// childVariable holds the Task of a process that is one side of a measurement.
const childVariable = "BENCH_TASK"

const (
	// childLimit is how long a side may take.
	childLimit = 3 * time.Minute
	// childGrace is how long after that it is killed.
	childGrace = 20 * time.Second
)

// A Task tells a child process what to do. A role reads the fields that concern it.
type Task struct {
	Role string
	URL  string // of the server
	Run  string // a name that no other run has: of a processor, a group, a queue

	Stream     string // name of the stream
	Codec      string // "msgpack" or "json"; of a set "msgpack" or "blob"
	Partitions int
	Events     int  // how many to process or send
	Whole      bool // these are all that there are
	Sent       bool // the stream is one that was sent to, not one that was filled
	Size       int  // bytes of a payload

	Processors int // that process the stream at once, 0: one

	Loop    string        // how Runnel's function loops: "raw", "records" or "take"; "position": "raw", and it reads by position
	Decode  bool          // what is written by hand decodes, or encodes
	Lanes   bool          // it has a goroutine per partition
	Work    time.Duration // the handler sleeps so long
	Readers int           // connections that read, or goroutines that send
	Count   int           // entries per read and stream, or records per send
	Pool    int           // connections of a client, 0: its default

	Each  bool // a worker tells of every event
	Reply bool // a loop written by hand decodes replies itself
	Watch bool // a Runnel worker's metrics are scraped every second, and the dashboard is open

	Stages int // of a set, 0: one
	Places int // visits of a stage at once, 0: the default

	Rate   int           // sends per second
	Length time.Duration // of a measurement
}

// A Result is what a side measured, by the name of the figure.
type Result map[string]float64

// roles are what a child process can be.
var roles = map[string]func(context.Context, Task) (Result, error){
	"runnel-drain":    runnelDrain,
	"plain-position":  byHand(plainPosition),
	"runnel-commit":   runnelCommit,
	"plain-commit":    byHand(plainCommit),
	"runnel-rows":     byHand(runnelRows),
	"plain-drain":     byHand(plainDrain),
	"runnel-send":     runnelSend,
	"plain-send":      byHand(plainSend),
	"sender":          byHand(sendPaced),
	"runnel-latency":  runnelLatency,
	"plain-latency":   byHand(plainLatency),
	"runnel-idle":     runnelIdle,
	"runnel-worker":   runnelWorker,
	"runnel-stage":    runnelStage,
	"bare-stage":      byHand(bareStage),
	"runnel-put":      runnelPut,
	"bare-save":       byHand(bareSave),
	"saver":           byHand(saver),
	"runnel-seen":     runnelSeen,
	"bare-seen":       byHand(bareSeen),
	"idle-set":        idleSet,
	"runnel-schedule": runnelSchedule,
	"bare-schedule":   byHand(bareSchedule),
	"fired-triggers":  byHand(firedTriggers),
	"idle-schedule":   idleSchedule,
	"runnel-webhook":  runnelWebhook,
	"bare-webhook":    byHand(bareWebhook),
	"ingest-webhook":  ingestWebhook,
	"ingest-bare":     byHand(ingestBare),
	"stored-webhook":  byHand(storedWebhook),
	"scale-webhook":   runnelWebhookScale,
	"idle-webhook":    idleWebhook,
	"watermill":       byHand(watermillDrain),
	"asynq":           byHand(asynqDrain),
	"redisqueue":      byHand(redisqueueDrain),
}

// childMain is the main function of a child process. It prints one line, the result.
func childMain(text string) error {
	var t Task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	role := roles[t.Role]
	if role == nil {
		return fmt.Errorf("no role %q", t.Role)
	}
	ctx, cancel := context.WithTimeout(context.Background(), childLimit)
	defer cancel()
	result, err := role(ctx, t)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Role, err)
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// childCommand is a process with a task, not started yet. The settings of the user who
// runs the benchmarks do not reach it.
func childCommand(ctx context.Context, t Task) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RUNNEL_") })
	cmd.Env = append(cmd.Env, childVariable+"="+string(text))
	proc.Tie(cmd)
	return cmd, nil
}

func runChild(ctx context.Context, t Task) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, childLimit+childGrace)
	defer cancel()
	cmd, err := childCommand(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.Role, err)
	}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", cmp.Or(ctx.Err(), err), tail(log.String()))
	}
	result, err := lastLine(out.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", t.Role, err, tail(log.String()))
	}
	return result, nil
}

// lastLine reads the result of a child, which libraries may have printed before.
func lastLine(text string) (Result, error) {
	text = strings.TrimSpace(text)
	var result Result
	if err := json.Unmarshal([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &result); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	if len(result) == 0 {
		return nil, errors.New("the result is empty")
	}
	return result, nil
}

func tail(log string) string {
	const most = 2000
	return strings.TrimSpace(log[max(0, len(log)-most):])
}
