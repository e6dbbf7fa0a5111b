package rebalance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata/*.txt")

// TestScripts plays testdata/*.txt: lines at the margin are inputs of the machine of executor "me";
// indented ones are its answers: the actions, its state when that changed ("="), and when it wants
// to be woken.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(want))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the answers differ (-update rewrites them); got:\n%s", got)
			}
		})
	}
}

type player struct {
	m     *machine
	now   time.Time
	state string
	out   strings.Builder
}

func play(script string) (string, error) {
	p := &player{
		m:   newMachine("me", "membership-key", 10*time.Second, func(d time.Duration) time.Duration { return d }),
		now: time.Unix(1000, 0),
	}
	p.m.atOnce = 16
	for i, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		fmt.Fprintln(&p.out, line)
		if line == "" || line[0] == '#' {
			continue
		}
		acts, err := p.input(strings.Fields(line))
		if err != nil {
			return "", fmt.Errorf("line %d: %w", i+1, err)
		}
		p.answer(acts)
	}
	return p.out.String(), nil
}

func (p *player) input(words []string) ([]action, error) {
	m, word := p.m, words[0]
	args := append(slices.Clone(words[1:]), "", "", "")
	switch word {
	case "start":
		d, _ := time.ParseDuration(args[0])
		return m.start(p.now, d), nil
	case "after":
		d, err := time.ParseDuration(args[0])
		p.now = p.now.Add(d)
		return m.tick(p.now), err
	case "joined":
		value, err := result(args)
		return m.joined(p.now, value, err), nil
	case "loaded":
		value, err := result(args)
		return m.loaded(p.now, value, err), nil
	case "observed":
		value, err := result(args)
		return m.observed(p.now, value), err
	case "told":
		return p.told(args)
	case "alive":
		return p.alive(args)
	case "reaped":
		if args[0] == "error" {
			return m.reaped(p.now, nil, nil, errors.New(args[1])), nil
		}
		value, err := result(args[1:])
		dead := slices.DeleteFunc(strings.Split(args[0], ","), func(s string) bool { return s == "nobody" })
		return m.reaped(p.now, dead, value, err), nil
	case "stop":
		return m.stop(p.now), nil
	case "left":
		if args[0] == "error" {
			return m.left(p.now, 0, errors.New(args[1])), nil
		}
		generation, err := strconv.ParseInt(args[0], 10, 64)
		return m.left(p.now, generation, err), nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", word, err)
	}
	switch word {
	case "acquired":
		return m.acquired(p.now, n, map[string]error{"": nil, "held": ErrHeld, "error": errors.New(args[2])}[args[1]]), nil
	case "released":
		return m.released(p.now, n), nil
	case "lost":
		return m.lost(p.now, n), nil
	}
	return nil, fmt.Errorf("no such input: %s", word)
}

func (p *player) told(args []string) ([]action, error) {
	msg := Message{Executor: args[1]}
	if err := msg.Kind.UnmarshalText([]byte(args[0])); err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(args[2])
	if msg.Kind == Released {
		msg.Partition = n
	} else {
		msg.Generation = int64(n)
	}
	return p.m.notified(p.now, msg), err
}

func (p *player) alive(args []string) ([]action, error) {
	if args[0] == "error" {
		return p.m.alive(p.now, nil, errors.New(args[1])), nil
	}
	life := map[string]time.Duration{}
	for _, arg := range args {
		if id, left, ok := strings.Cut(arg, "="); ok && left != "dead" {
			d, err := time.ParseDuration(left)
			if err != nil {
				return nil, err
			}
			life[id] = d
		}
	}
	return p.m.alive(p.now, life, nil), nil
}

// result reads "error text…", "none", "json …" or a membership such as
// "g7/4 me=0,1 b=2,3": generation 7, four partitions.
func result(args []string) ([]byte, error) {
	switch args[0] {
	case "error":
		return nil, errors.New(args[1])
	case "none":
		return nil, nil
	case "json":
		return []byte(args[1]), nil
	case "newer":
		return nil, fmt.Errorf("load: %w", &versionError{Version: 2})
	}
	var g Group
	if _, err := fmt.Sscanf(args[0], "g%d/%d", &g.Generation, &g.Partitions); err != nil {
		return nil, fmt.Errorf("membership %q: %w", args[0], err)
	}
	g.Executors = map[string]Executor{}
	for _, arg := range args[1:] {
		id, list, ok := strings.Cut(arg, "=")
		if !ok {
			continue
		}
		e := Executor{Worker: id, JoinedAt: time.Unix(900, 0), Expiry: 10 * time.Second}
		for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			n, err := strconv.Atoi(s)
			if err != nil {
				return nil, err
			}
			e.Partitions = append(e.Partitions, n)
		}
		g.Executors[id] = e
	}
	return g.Encode(), nil
}

func (p *player) answer(acts []action) {
	for _, a := range acts {
		fmt.Fprintf(&p.out, "    %s\n", describe(a))
	}
	if s := p.describeState(); s != p.state {
		p.state = s
		fmt.Fprintf(&p.out, "    = %s\n", s)
	}
	if at := p.m.deadline(); !at.IsZero() {
		fmt.Fprintf(&p.out, "    wake in %v\n", at.Sub(p.now))
	}
}

func describe(a action) string {
	switch a.verb {
	case doAcquire:
		return fmt.Sprintf("acquire %d", a.partition)
	case doCancel:
		return fmt.Sprintf("cancel the try for %d", a.partition)
	case doRelease:
		return fmt.Sprintf("release %d", a.partition)
	case doJoin:
		return "join"
	case doLoad:
		return "load"
	case doAlive:
		return fmt.Sprintf("look at the heartbeats of %s, at most %v", strings.Join(a.executors, " "), a.limit)
	case doReap:
		return "reap " + strings.Join(a.executors, " ")
	case doLeave:
		return "leave"
	case doAnnounce:
		s := fmt.Sprintf("announce %v %s", a.message.Kind, a.message.Executor)
		if a.message.Kind == Released {
			return fmt.Sprintf("%s %d", s, a.message.Partition)
		}
		return fmt.Sprintf("%s %d", s, a.message.Generation)
	case doAssigned:
		return fmt.Sprintf("assigned %s in generation %d", numbers(a.partitions), a.message.Generation)
	case doWarn:
		return "warn: " + a.err.Error()
	}
	return fmt.Sprintf("action %d", a.verb)
}

func (p *player) describeState() string {
	s := phaseNames[p.m.phase]
	if p.m.phase == following {
		s += fmt.Sprintf(" generation %d", p.m.group.Generation)
	}
	for stage, name := range stageNames {
		var list []string
		for _, n := range p.m.numbers() {
			if h := p.m.holdings[n]; int(h.stage) == stage {
				text := strconv.Itoa(n)
				if !h.wanted && h.stage != releasing {
					text += " (given up)"
				}
				if h.wanted && h.stage == releasing {
					text += " (wanted again)"
				}
				list = append(list, text)
			}
		}
		if len(list) > 0 {
			s += "; " + name + " " + strings.Join(list, " ")
		}
	}
	if p.m.phase == ended && p.m.err != nil {
		s += ": " + p.m.err.Error()
	}
	return s
}

func numbers(list []int) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Trim(fmt.Sprint(list), "[]")
}

// Names of phases and stages in the scripts.
var (
	phaseNames = [...]string{"joining", "following", "leaving", "ending", "ended"}
	stageNames = [...]string{"queued", "trying", "waiting", "owned", "releasing"}
)
