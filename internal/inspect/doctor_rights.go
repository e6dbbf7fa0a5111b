package inspect

import (
	"context"
	"strings"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

// rights reports the rights of the role that the user lacks.
func (d *doctor) rights(ctx context.Context, role keys.Role) error {
	missing, worse, err := d.c.Lacking(ctx, role)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		var names []string
		for _, r := range missing {
			names = append(names, r.Name)
		}
		d.say("rights", LevelProblem, d.c.Grant(missing), "%s needs, and this user lacks: %s", role.Indefinite(), strings.Join(names, ", "))
	}
	for _, r := range worse {
		d.say("rights", LevelWarning, d.c.Grant([]store.Right{r}), "no %s: %s", r.Name, r.Without)
	}
	if len(missing)+len(worse) == 0 {
		d.say("rights", LevelOK, "", "all that %s needs", role.Indefinite())
	}
	return nil
}
