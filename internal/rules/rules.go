// Package rules says what is paused or blocked: who may hold what back, and
// whether a partition is held back at a moment. It is pure: rules come in as
// they are stored, and time comes in as it is on the server.
//
// A pause is an operator's, a block an administrator's. Both may be in force for
// the same scope; what either of them covers does not run.
package rules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// version is the "v" of the JSON that this package reads.
const version = 1

// generationField counts the changes; every other field of the hash is a rule.
const generationField = "generation"

// A Kind is what a rule does.
type Kind string

const (
	Pause Kind = "pause"
	Block Kind = "block"
)

// A Rule holds back what its scope covers, from At until Until.
type Rule struct {
	Kind     Kind
	Scope    Scope
	Who, Why string
	At       time.Time
	Until    time.Time // zero: until it is removed
}

// Field is the rule's name in the hash.
func (r Rule) Field() string { return string(r.Kind) + " " + r.Scope.String() }

// InForce says whether the rule holds at a time of the server's clock.
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

// A Set is all rules of an app at one moment. The zero Set holds nothing back.
type Set struct {
	Generation int64  // grows with every change
	Rules      []Rule // blocks first, then by scope
}

// ErrInvalid is in the chain of what Parse returns for what is no rule.
var ErrInvalid = errors.New("stored rules are not readable")

type ruleJSON struct {
	Version *int   `json:"v"`
	Who     string `json:"who"`
	Why     string `json:"why"`
	At      int64  `json:"at"`    // ms
	Until   int64  `json:"until"` // ms, 0: none
}

// Parse reads the fields of the hash. A rule of another version or of a form
// that it does not know is an error: guessing might run what should be held.
func Parse(fields map[string]string) (Set, error) {
	var s Set
	for name, value := range fields {
		if name == generationField {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return Set{}, fmt.Errorf("%w: generation %q", ErrInvalid, value)
			}
			s.Generation = n
			continue
		}
		r, err := parseRule(name, value)
		if err != nil {
			return Set{}, err
		}
		s.Rules = append(s.Rules, r)
	}
	slices.SortFunc(s.Rules, func(a, b Rule) int { return cmp.Compare(a.Field(), b.Field()) })
	return s, nil
}

func parseRule(name, value string) (Rule, error) {
	kind, text, _ := strings.Cut(name, " ")
	scope, err := ParseScope(text)
	if err != nil || kind != string(Pause) && kind != string(Block) {
		return Rule{}, fmt.Errorf("%w: %q is no rule", ErrInvalid, name)
	}
	var j ruleJSON
	if err := json.Unmarshal([]byte(value), &j); err != nil {
		return Rule{}, fmt.Errorf("%w: %s: %v", ErrInvalid, name, err)
	}
	if j.Version == nil || *j.Version != version {
		return Rule{}, fmt.Errorf("%w: %s has a version other than %d: written by another release", ErrInvalid, name, version)
	}
	if !isMoment(j.At) || !isMoment(j.Until) {
		return Rule{}, fmt.Errorf("%w: %s is of %d ms until %d ms", ErrInvalid, name, j.At, j.Until)
	}
	r := Rule{Kind: Kind(kind), Scope: scope, Who: j.Who, Why: j.Why, At: time.UnixMilli(j.At).UTC()}
	if j.Until != 0 {
		r.Until = time.UnixMilli(j.Until).UTC()
	}
	return r, nil
}

// isMoment says whether a time is one that JSON can tell: of the years 1 to 9999.
func isMoment(ms int64) bool { return ms >= -62_135_596_800_000 && ms <= 253_402_300_799_999 }

// InForce are the rules that hold at a time of the server's clock.
func (s Set) InForce(now time.Time) []Rule {
	var out []Rule
	for _, r := range s.Rules {
		if r.InForce(now) {
			out = append(out, r)
		}
	}
	return out
}

// Holding are the rules in force that hold a partition back; none: it may run.
func (s Set) Holding(stream, processor string, partition int, now time.Time) []Rule {
	var out []Rule
	for _, r := range s.Rules {
		if r.Scope.Covers(stream, processor, partition) && r.InForce(now) {
			out = append(out, r)
		}
	}
	return out
}

// NextEnd is when the next of the rules in force ends by itself, zero for never.
func (s Set) NextEnd(now time.Time) time.Time {
	var next time.Time
	for _, r := range s.Rules {
		if !r.Until.IsZero() && r.InForce(now) && (next.IsZero() || r.Until.Before(next)) {
			next = r.Until
		}
	}
	return next
}
