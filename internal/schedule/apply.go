package schedule

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// A Fact is that a source has ended at a logical time, with the tasks that this concerned then.
type Fact struct {
	Partition  int      `json:"partition"`
	ID         string   `json:"id"` // of its entry
	Source     string   `json:"source"`
	Time       int64    `json:"t"` // ms since 1970
	Generation int64    `json:"generation"`
	Operation  string   `json:"operation"` // of the re-run that it belongs to, "" for none
	Priority   int64    `json:"priority"`  // Own or one that it hands on
	Targets    []string `json:"-"`         // tasks behind a letter: e, or f for those that its failure concerns
}

// FactOf returns the fact of an entry; any other entry, such as one that wakes the owner, has no source.
func FactOf(partition int, id string, fields map[string]string) (f Fact, err error) {
	f = Fact{Partition: partition, ID: id, Source: fields["src"], Operation: fields["o"], Targets: strings.Fields(fields["to"])}
	for name, n := range map[string]*int64{"t": &f.Time, "g": &f.Generation, "p": &f.Priority} {
		if *n, err = strconv.ParseInt(fields[name], 10, 64); err != nil && f.Source != "" {
			return f, fmt.Errorf("fact %s: field %s: %w", id, name, err)
		}
	}
	return f, nil
}

// A Token is a fact for one task.
type Token struct {
	*Fact
	Task  string `json:"task"`
	Fails bool   `json:"fails"` // the fact is a failure that the task handles
}

// Tokens returns the tokens of facts by the partition of their tasks, as partition tells it.
func Tokens(facts []Fact, partition func(source string) int) map[int][]Token {
	tokens := map[int][]Token{}
	for i := range facts {
		for _, to := range facts[i].Targets {
			task := to[1:]
			n := partition(task)
			tokens[n] = append(tokens[n], Token{Fact: &facts[i], Task: task, Fails: to[0] == 'f'})
		}
	}
	return tokens
}

// Apply applies tokens by partition. It returns how many were accepted, duplicate, void and unknown. Repeated, at any later time, it changes
// nothing. After an error some may have been applied.
func (s *Scheduler) Apply(ctx context.Context, tokens map[int][]Token) (all map[string]int64, err error) {
	all = map[string]int64{}
	inTrip(ctx, s, "apply", tokens, alone, func(_ []Token, some map[string]int64, failed error) {
		for what, n := range some {
			all[what] += n
		}
		err = cmp.Or(failed, err)
	})
	return all, err
}
