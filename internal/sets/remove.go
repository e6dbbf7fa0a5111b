package sets

import (
	"cmp"
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// Removed is what `stage rm` prints.
type Removed struct {
	Set    string `json:"set"`
	Stage  string `json:"stage"`
	Visits int64  `json:"visits"` // that waited
}

// runRm runs `stage rm`. A program whose own code has the stage refuses; of other workers that cannot be known,
// so the question says what they do.
func runRm(ctx context.Context, env *extension.Env, p Process) error {
	if len(env.Args) != 1 {
		return extension.Usagef("rm needs SET/STAGE")
	}
	s, name, err := part(ctx, env.Client, p, env.Args[0])
	if err != nil {
		return err
	}
	if p != nil && p.Declares(s.name, name) {
		return fmt.Errorf("this program's code has the stage %s of set %s: remove it there, deploy that, and then forget the stage", name, s.name)
	}
	state, err := s.look(ctx, env.Client)
	if err != nil {
		return err
	}
	for _, one := range state.Stages {
		if one.Stage == name {
			err = env.Confirm("Forget the stage %s of set %s, with %s that wait or run, %d failed and %d dead ones? A worker whose code still has the stage goes on with it, unseen, and adds it again at its next start: deploy without it first.",
				name, s.name, words.Plural(one.Waiting+one.Running, "visit"), one.Failing, one.Dead)
		}
	}
	if err != nil {
		return err
	}
	out := Removed{Set: s.name, Stage: name}
	did, err := env.Audited(ctx, "stage/rm", s.name+"/"+name, func(ctx context.Context) (did string, err error) {
		out.Visits, err = s.forget(ctx, env.Client, name)
		return fmt.Sprintf("stage %s of set %s forgotten, with %s that waited", name, s.name, words.Plural(out.Visits, "visit")), err
	})
	if err != nil {
		return err
	}
	return env.Print(out, func(t extension.Table) { t.Linef("%s", did) })
}

// forget forgets a stage. Its name goes last: while it is there, all of this can be repeated.
func (s *set) forget(ctx context.Context, c *store.Client, name string) (visits int64, err error) {
	for n := range s.meta.Partitions {
		for cursor := ""; cursor != "0"; {
			next, waited, err := s.calls.ForgetPage(ctx, n, name, cmp.Or(cursor, "0"))
			if err != nil {
				return visits, fmt.Errorf("set %s partition %d: %w", s.name, n, err)
			}
			cursor, visits = next, visits+waited
		}
	}
	_, err = c.DropPart(ctx, s.name, name)
	return visits, err
}
