package stage

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/runnel-go/runnel/internal/store"
)

// A Mode is what a Commit does with an entity.
type Mode string

const (
	Leave  Mode = ""
	Put    Mode = "s"
	Remove Mode = "x"
	Forget Mode = "z" // leave it, since it is stored elsewhere and was deleted there
)

// What becomes of a visit.
type What byte

const (
	Ends     What = 'e' // it ends
	Waits    What = 'n' // it ends, and waits for Due
	Fails    What = 'f' // it failed with Text, and waits for Due
	Dies     What = 'd' // it died with Text, at Due
	Recovers What = 'c' // it ends well after failures
	Puts     What = 'p' // it waits for Due, whether there was one or not
	Alone    What = 'a' // it runs on, with the time Due and the number Text, and nothing that can end its worker runs beside it
	Begins   What = 'b' // it begins to run, with the time Due and the number Text, whether it waited or not; as Puts if it runs already. Behind " " and Puts of a Take it waits on where visits were put since
)

// A Settlement is what becomes of one visit.
type Settlement struct {
	Stage string
	What  What
	Due   Due
	Text  string
}

// An End ends the visit of the first Settlement, which must run, and settles others of its entity.
type End struct {
	ID              string
	Number          int64 // of the call that began the first visit
	Mode            Mode
	Version         int64 // that must be stored, but for Leave
	Passes, Payload string
	Settle          []Settlement // Remove and Forget forget all visits, and need the first one only
}

// Has reports whether the End does one of these with a visit.
func (e *End) Has(whats ...What) bool {
	return slices.ContainsFunc(e.Settle, func(s Settlement) bool { return slices.Contains(whats, s.What) })
}

// An Outcome is what became of an End.
type Outcome string

const (
	OK       Outcome = "ok"
	Begun    Outcome = "begun"    // OK, and what Begins runs
	Gone     Outcome = "gone"     // the visit does not run, or the entity is not there
	Conflict Outcome = "conflict" // another version is stored; the visit runs on
)

// Ended is the answer to an End.
type Ended struct {
	Outcome Outcome
	Version int64  // the stored one, 0 for none
	Found   Entity // of a Conflict
}

// A Commit ends visits of one partition, at most 128 entities, each all or nothing. It may be repeated
// under its ownership: what has ended is Gone, with the version that it got.
type Commit struct {
	Partition int
	Fence     string // of the ownership: its lock value
	Ends      []End

	Ended []Ended
	Err   error
}

// Commit runs commits.
func (s *Set) Commit(ctx context.Context, commits ...*Commit) {
	calls := make([]*store.ScriptCall, len(commits))
	for i, c := range commits {
		calls[i] = s.commitCall(c)
	}
	s.run(ctx, calls, func(i int, texts []string, err error) { commits[i].Ended, commits[i].Err = endedOf(texts, err) })
}

func (s *Set) commitCall(c *Commit) *store.ScriptCall {
	n, numbers := c.Partition, map[string]int{}
	call := &store.ScriptCall{
		Script: commitScript, Args: append(make([]any, 0, 1+17*len(c.Ends)), c.Fence), // of two visits each
		Keys: []string{s.place(n).Own, s.key("visitrun", n, ""), s.key("visitfail", n, ""), s.key("ent", n, ""), s.key("entseq", n, "")},
	}
	number := func(key string) int {
		if numbers[key] == 0 {
			call.Keys = append(call.Keys, key)
			numbers[key] = len(call.Keys)
		}
		return numbers[key]
	}
	for _, e := range c.Ends {
		passes, forget := e.Passes, 0
		if passes == "" {
			passes = "0"
		}
		mode := string(e.Mode)
		if e.Mode == Remove || e.Mode == Forget {
			forget = 1 + 2*len(s.stages)
		}
		if e.Mode == Forget {
			mode = ""
		}
		call.Args = append(call.Args, e.ID, mode, e.Version, passes, e.Payload, e.Number, len(e.Settle)+forget)
		for _, v := range e.Settle {
			key := 0
			switch v.What {
			case Dies, Recovers:
				if v.Stage != Touch {
					key = number(s.dead(n, v.Stage))
				}
			case Waits, Fails, Puts, Begins:
				key = number(s.queue(n, v.Stage))
			}
			call.Args = append(call.Args, v.Stage, string(v.What), key, string(v.Due), v.Text)
		}
		if forget > 0 {
			call.Args = append(call.Args, Touch, "z", number(s.queue(n, Touch)), "", "")
			for _, stage := range s.stages {
				call.Args = append(call.Args, stage, "z", number(s.queue(n, stage)), "", "", stage, "z", number(s.dead(n, stage)), "", "")
			}
		}
	}
	return call
}

func endedOf(texts []string, err error) ([]Ended, error) {
	if err == nil && len(texts)%3 != 0 {
		err = fmt.Errorf("unexpected reply of %d texts", len(texts))
	}
	var out []Ended
	for ; err == nil && len(texts) > 0; texts = texts[3:] {
		e := Ended{Outcome: Outcome(texts[0])}
		if e.Version, err = strconv.ParseInt(texts[1], 10, 64); err == nil {
			e.Found, err = entityOf(texts[2])
		}
		out = append(out, e)
	}
	return out, err
}
