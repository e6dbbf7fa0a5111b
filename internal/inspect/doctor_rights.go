package inspect

import (
	"context"
	"strings"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

// kinds has the rights to the keys of an extension checked if the metadata has streams of it. What
// cannot be read, other checks report.
func (d *doctor) kinds(ctx context.Context) {
	streams, _ := d.c.Streams(ctx)
	for _, stream := range streams {
		m, _, _ := d.c.LoadMeta(ctx, stream)
		d.c.Uses(m.Kind)
		if len(m.Tables)+len(m.Atomic) > 0 {
			d.c.Uses(store.Tables)
		}
	}
}

// rights reports the rights of the role that the user lacks.
func (d *doctor) rights(ctx context.Context, role keys.Role) error {
	d.kinds(ctx)
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
