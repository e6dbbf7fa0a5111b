// Package rules decides whether a partition is paused or blocked at a moment. It is pure:
// its inputs are the stored rules and the server's time.
//
// A pause is an operator's, a block an administrator's. Both may be in force for the same
// scope; a partition that either of them covers does not run.
package rules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// version is the "v" of the JSON that this package reads.
const version = 1

// generationField counts the changes; every other field of the hash is a rule.
const generationField = "generation"

// Kinds of rules.
const (
	Pause = "pause"
	Block = "block"
)

// A Rule holds back what its scope covers, from At until Until.
type Rule struct {
	Kind     string // Pause or Block
	Scope    Scope
	Who, Why string
	At       time.Time
	Until    time.Time // zero: until it is removed

	early bool // a block among the pauses, where earlier releases set it
}

// Field returns the rule's name in the hash.
func (r Rule) Field() string { return r.Kind + " " + r.Scope.String() }

// InForce reports whether the rule holds at a time of the server's clock.
func (r Rule) InForce(now time.Time) bool { return r.Until.IsZero() || now.Before(r.Until) }

// String is the rule as a log line or an error shows it.
func (r Rule) String() string {
	s := fmt.Sprintf("%s of %s by %s", r.Kind, r.Scope, r.Who)
	if !r.Until.IsZero() {
		s += " until " + r.Until.UTC().Format(time.RFC3339)
	}
	if r.Why != "" {
		s += ": " + r.Why
	}
	return s
}

// Generations grow with every change of the values of the two keys.
type Generations struct {
	Pauses int64
	Blocks int64 // -1 of an executor of a release that does not know this key
}

// A Set is all rules of an app at one moment. The zero Set holds nothing back.
type Set struct {
	Generations Generations
	Rules       []Rule // blocks first, then by scope

	copies []Rule // of blocks, among the pauses: for releases that read no other key
}

// ErrInvalid is in the chain of the errors of Parse for values that are no rules.
var ErrInvalid = errors.New("stored rules are not readable")

type ruleJSON struct {
	Version *int   `json:"v"`
	Who     string `json:"who"`
	Why     string `json:"why"`
	At      int64  `json:"at"`    // ms
	Until   int64  `json:"until"` // ms, 0: none
	Copy    bool   `json:"copy"`  // the rule itself stands among the blocks
}

// Parse parses the hash of the pauses, which may have blocks of earlier releases too. A
// rule of another version or of an unknown form is an error: a guess might run a
// partition that should be held.
func Parse(pauses map[string]string) (Set, error) {
	var s Set
	err := parse(pauses, &s.Generations.Pauses, func(r Rule, isCopy bool) {
		r.early = r.Kind == Block
		if isCopy && r.early {
			s.copies = append(s.copies, r)
			return
		}
		s.Rules = append(s.Rules, r)
	})
	return s.sorted(), err
}

// WithBlocks adds the hash of the blocks to a set that has the pauses.
func (s Set) WithBlocks(blocks map[string]string) (Set, error) {
	s.Rules = slices.Clone(s.Rules)
	var odd error
	err := parse(blocks, &s.Generations.Blocks, func(r Rule, _ bool) {
		if r.Kind != Block {
			odd = fmt.Errorf("%w: %q is no block", ErrInvalid, r.Field())
		}
		s.Rules = append(s.Rules, r)
	})
	return s.sorted(), cmp.Or(err, odd)
}

func (s Set) sorted() Set {
	sort.SliceStable(s.Rules, func(i, j int) bool { return s.Rules[i].Field() < s.Rules[j].Field() })
	return s
}

// IsCopy reports whether a stored rule is a copy of one among the blocks.
func IsCopy(value string) bool {
	var j ruleJSON
	return json.Unmarshal([]byte(value), &j) == nil && j.Copy
}

// parse reads a hash: its generation, and each rule.
func parse(fields map[string]string, generation *int64, add func(r Rule, isCopy bool)) error {
	for name, value := range fields {
		if name == generationField {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return fmt.Errorf("%w: generation %q", ErrInvalid, value)
			}
			*generation = n
			continue
		}
		r, isCopy, err := parseRule(name, value)
		if err != nil {
			return err
		}
		add(r, isCopy)
	}
	return nil
}

func parseRule(name, value string) (r Rule, isCopy bool, err error) {
	kind, text, _ := strings.Cut(name, " ")
	scope, err := ParseScope(text)
	if err != nil || kind != Pause && kind != Block {
		return Rule{}, false, fmt.Errorf("%w: %q is no rule", ErrInvalid, name)
	}
	var j ruleJSON
	if err := json.Unmarshal([]byte(value), &j); err != nil {
		return Rule{}, false, fmt.Errorf("%w: %s: %v", ErrInvalid, name, err)
	}
	if j.Version == nil || *j.Version != version {
		return Rule{}, false, fmt.Errorf("%w: %s has a version other than %d: written by another release", ErrInvalid, name, version)
	}
	if !isMoment(j.At) || !isMoment(j.Until) {
		return Rule{}, false, fmt.Errorf("%w: %s is of %d ms until %d ms", ErrInvalid, name, j.At, j.Until)
	}
	r = Rule{Kind: kind, Scope: scope, Who: j.Who, Why: j.Why, At: time.UnixMilli(j.At).UTC()}
	if j.Until != 0 {
		r.Until = time.UnixMilli(j.Until).UTC()
	}
	return r, j.Copy, nil
}

// isMoment reports whether JSON can represent a time: one of the years 1 to 9999.
func isMoment(ms int64) bool { return ms >= -62_135_596_800_000 && ms <= 253_402_300_799_999 }

// InForce returns the rules that hold at a time of the server's clock.
func (s Set) InForce(now time.Time) []Rule {
	return s.those(func(r Rule) bool { return r.InForce(now) })
}

// Holding returns the rules in force that hold a partition back. Without any the
// partition may run.
func (s Set) Holding(stream, processor string, partition int, now time.Time) []Rule {
	return s.those(func(r Rule) bool { return r.Scope.Covers(stream, processor, partition) && r.InForce(now) })
}

func (s Set) those(is func(Rule) bool) (out []Rule) {
	for _, r := range s.Rules {
		if is(r) {
			out = append(out, r)
		}
	}
	return out
}

// InEffect reports whether an executor in which these generations are in full effect
// holds back all of a scope: one rule in force that it knows contains the scope. One of
// a release that does not know the blocks' key knows their copies.
func (s Set) InEffect(g Generations, scope Scope, now time.Time) bool {
	known := func(r Rule) bool {
		if !r.InForce(now) || !r.Scope.Contains(scope) {
			return false
		}
		if r.Kind == Pause || r.early {
			return g.Pauses == s.Generations.Pauses
		}
		return g.Blocks == s.Generations.Blocks
	}
	return slices.ContainsFunc(s.Rules, known) || g.Blocks < 0 && slices.ContainsFunc(s.copies, known)
}

// NextEnd returns when the next of the rules in force ends by itself, zero for never.
func (s Set) NextEnd(now time.Time) time.Time {
	var next time.Time
	for _, r := range s.Rules {
		if !r.Until.IsZero() && r.InForce(now) && (next.IsZero() || r.Until.Before(next)) {
			next = r.Until
		}
	}
	return next
}
