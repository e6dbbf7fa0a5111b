package exact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Visit returns the row of a key that takes together what comes without a pause, which was begun or goes on with an
// event. until is when it ends, in ms.
func (r Row) Visit(m Mark, until int64) Row {
	return Row{Sum: r.Sum + m.N, Count: r.Count + 1, Until: until}
}

// EndOf returns what is emitted when the row of a key ends, in a partition of a stage, at a time in ms.
func EndOf(stage string, partition int, key string, row Row, at int64) Mark {
	return Mark{Key: key, N: row.Sum, From: fmt.Sprint(stage, "/", partition), Nth: int(row.Count), Nonce: uint64(at)}
}

// judgeEnds compares what was emitted for the rows that have ended with the fold over the events: of each partition in
// order, or where that cannot be told the sums alone.
func (s Stage) judgeEnds(v *Verdict) {
	for p, events := range s.Events {
		want, from := s.visits(p, events), fmt.Sprint(s.Name, "/", p)
		found := 0
		for target, all := range s.Ends {
			got := slices.DeleteFunc(marksOf(all), func(m Mark) bool { return m.From != from })
			due := slices.DeleteFunc(slices.Clone(want), func(m Mark) bool { return s.Target(m.Key) != target })
			found += len(got)
			if s.Batches || s.Order != InPartition {
				got, due = sums(got), sums(due)
			}
			if i := firstOther(got, due); i >= 0 {
				v.fault("%s: end %d of %d in partition %d by partition %d of ends is %s, want %s", s.Name, i, len(due), p, target, at(got, i), at(due, i))
			}
		}
		v.Ends += found
	}
}

func marksOf(entries []Entry) (marks []Mark) {
	for _, e := range entries {
		marks = append(marks, e.Mark)
	}
	return marks
}

func at(marks []Mark, i int) string {
	if i >= len(marks) {
		return "none"
	}
	return fmt.Sprintf("%+v", marks[i])
}

func firstOther(a, b []Mark) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// visits returns the rows of a partition that have ended, in the order of their ends: all of them.
func (s Stage) visits(p int, events []Entry) (ended []Mark) {
	open := map[string]Row{}
	end := func(by int64) {
		var over []Mark
		for key, row := range open {
			if by < 0 || row.Until <= by {
				over = append(over, EndOf(s.Name, p, key, row, row.Until))
				delete(open, key)
			}
		}
		slices.SortFunc(over, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.Nonce, b.Nonce), strings.Compare(a.Key, b.Key)) })
		ended = append(ended, over...)
	}
	for _, e := range events {
		if s.Skipped[e.Event()] {
			continue
		}
		now := timeOf(e.ID)
		end(now)
		open[e.Mark.Key] = open[e.Mark.Key].Visit(e.Mark, now+s.Pause)
	}
	end(-1)
	return ended
}

// sums adds the marks of each key up.
func sums(marks []Mark) (out []Mark) {
	of := map[string]Mark{}
	for _, m := range marks {
		of[m.Key] = Mark{Key: m.Key, N: of[m.Key].N + m.N, Nth: of[m.Key].Nth + m.Nth}
	}
	for _, m := range of {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Mark) int { return strings.Compare(a.Key, b.Key) })
	return out
}
