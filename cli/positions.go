package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// A goal says where a processor is to stand: everything up to there counts as done.
type goal struct {
	id    string         // an entry ID, or "$" for the end
	when  *moment        // what was appended before
	steps int64          // so many entries from where it stands
	of    map[int]string // by partition, from a file or for one event
}

// mostSteps is more entries than a partition can have.
const mostSteps = 1 << 40

var (
	entryID  = regexp.MustCompile(`^([0-9]+)(?:-([0-9]+))?$`)
	stepsOff = regexp.MustCompile(`^[+-][0-9]+$`)
)

// parseGoal reads what --to says.
func parseGoal(text string) (*goal, error) {
	switch {
	case text == "start":
		return &goal{id: "0-0"}, nil
	case text == "end":
		return &goal{id: "$"}, nil
	case stepsOff.MatchString(text):
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || max(n, -n) > mostSteps || n == math.MinInt64 {
			return nil, fmt.Errorf("%s is too far", text)
		}
		return &goal{steps: n}, nil
	case entryID.MatchString(text):
		id, err := parseID(text)
		return &goal{id: id}, err
	}
	if n, id, ok := entryid.ParseEventID(text); ok {
		id, err := parseID(id)
		return &goal{of: map[int]string{n: id}}, err
	}
	when, ok := parseMoment(text)
	if !ok {
		return nil, fmt.Errorf("%q is none of start, end, an entry ID, an event such as 3/1767225600000-0, a time such as @2026-01-31T08:00:00Z, a time ago such as -1h30m, a number of events such as -100 or +1", text)
	}
	return &goal{when: &when}, nil
}

func parseID(s string) (string, error) {
	m := entryID.FindStringSubmatch(s)
	var parts [2]uint64
	for i, digits := range m[1:] {
		if digits == "" {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return "", fmt.Errorf("entry ID %q: %s is too large", s, digits)
		}
		parts[i] = n
	}
	return fmt.Sprintf("%d-%d", parts[0], parts[1]), nil
}

// A moment is a time, or how long ago one is.
type moment struct {
	at   time.Time
	back time.Duration // below zero, or at is meant
}

// parseMoment reads one; false for what is none.
func parseMoment(text string) (moment, bool) {
	at, err := time.Parse(time.RFC3339, strings.TrimPrefix(text, "@"))
	if err == nil {
		return moment{at: at}, true
	}
	back, err := time.ParseDuration(text)
	return moment{back: back}, err == nil && back < 0
}

// before is the position before what was appended at the moment, by Redis' clock.
func (m moment) before(ctx context.Context, c *store.Client) (string, error) {
	if m.back < 0 {
		now, err := c.Redis().Time(ctx).Result()
		if err != nil {
			return "", fmt.Errorf("the clock of Redis: %w", err)
		}
		m.at = now.Add(m.back)
	}
	return entryid.Before(fmt.Sprint(max(m.at.UnixMilli(), 0))), nil
}

// settle makes positions of times and steps, before anything is locked: to count steps
// takes time.
func (g *goal) settle(ctx context.Context, c *store.Client, p *inspect.ProcessorState, numbers []int) (err error) {
	switch {
	case g.of != nil || g.id != "":
		return nil
	case g.when != nil:
		g.id, err = g.when.before(ctx, c)
		return err
	}
	g.of = map[int]string{}
	for _, n := range numbers {
		s := p.Partitions[n]
		if s.Err != "" {
			return fmt.Errorf("partition %d cannot be looked at: %s", n, s.Err)
		}
		to, err := c.Step(ctx, c.Partition(p.Stream, p.Processor, n), s.Floor, g.steps)
		if err != nil {
			return err
		}
		g.of[n] = to
	}
	return nil
}

// in returns the position in a partition, "$" for its end.
func (g *goal) in(partition int) string {
	if g.of != nil {
		return g.of[partition]
	}
	return g.id
}

// Positions are what `processor reset --export` writes and --import reads.
type positions struct {
	Version   int            `json:"v"`
	App       string         `json:"app"`
	Stream    string         `json:"stream"`
	Processor string         `json:"processor"`
	Positions map[int]string `json:"positions"` // by partition: everything up to there is done
}

// export writes where a processor stands to a file, or to out for "-".
func export(path string, out io.Writer, app string, p *inspect.ProcessorState, numbers []int) error {
	all := positions{1, app, p.Stream, p.Processor, map[int]string{}}
	for _, n := range numbers {
		if s := p.Partitions[n]; s.Err == "" {
			all.Positions[n] = s.Floor
			continue
		}
		return fmt.Errorf("partition %d cannot be looked at: %s", n, p.Partitions[n].Err)
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if path == "-" {
		_, err = out.Write(text)
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // what was kept before is kept
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// imported reads such a file for a stream of so many partitions. It may be that of
// another processor, which begins where that one stood, but not of another stream.
func imported(path, app, stream string, partitions int) (*goal, []int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var all positions
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if all.Version != 1 || len(all.Positions) == 0 {
		return nil, nil, fmt.Errorf("%s: it holds no positions, or those of another version", path)
	}
	if all.App != app || all.Stream != stream {
		return nil, nil, fmt.Errorf("%s: it holds positions in stream %s of app %s", path, all.Stream, all.App)
	}
	t := &goal{of: map[int]string{}}
	var numbers []int
	for n, id := range all.Positions {
		if n < 0 || n >= partitions {
			return nil, nil, fmt.Errorf("%s: there is no partition %d of %d", path, n, partitions)
		}
		if !entryID.MatchString(id) {
			return nil, nil, fmt.Errorf("%s: partition %d: %q is no entry ID", path, n, id)
		}
		if t.of[n], err = parseID(id); err != nil {
			return nil, nil, fmt.Errorf("%s: partition %d: %w", path, n, err)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return t, numbers, nil
}

var errNumbers = errors.New("say partitions as in 0-3,7")

// numbersOf reads a list such as "0-3,7", of partitions below n; all of them if it is
// empty.
func numbersOf(text string, n int) (out []int, err error) {
	if text == "" {
		text = fmt.Sprintf("0-%d", n-1)
	}
	for _, part := range list(text) {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || last < first {
			return nil, fmt.Errorf("%q: %w", part, errNumbers)
		}
		if last >= n {
			return nil, fmt.Errorf("there is no partition %d of %d", last, n)
		}
		for i := first; i <= last; i++ {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil, errNumbers
	}
	return out, nil
}
