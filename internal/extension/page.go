package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A Page is a page of the dashboard. Its address is #/<extension>.
type Page struct {
	Title string // in the menu
	// Module is a JavaScript module that exports the component View, as the pages of the dashboard do; it
	// imports them and their libraries from "../".
	Module []byte
	// Reads are served at /api/<extension>/<name>, with the parameters of the request. The answer is JSON.
	Reads map[string]func(ctx context.Context, c *store.Client, q url.Values) (any, error)
	// Actions are requested as <extension>/<name>, with the token, and audited. body is the JSON of the request,
	// whose field "on" names what it acts on; what an action returns is shown and audited as its result.
	Actions map[string]func(ctx context.Context, c *store.Client, body []byte) (string, error)
}

// NewPage returns a page whose reads and actions are the named ones of commands: actions, if they change something. Parameters of a read and
// fields of an action are "arg", of which there may be several, and flags, but for those that pages do not have. A read answers what the
// command prints as JSON, an action what it prints as text, for which it has ten seconds. An action has "on", "who" and "why", too; on has
// to be what the command acts on.
func NewPage(title string, module []byte, commands []Command, names ...string) *Page {
	p := &Page{
		Title: title, Module: module,
		Reads:   map[string]func(context.Context, *store.Client, url.Values) (any, error){},
		Actions: map[string]func(context.Context, *store.Client, []byte) (string, error){},
	}
	for _, c := range commands {
		name, _, _ := strings.Cut(c.Call, " ")
		switch {
		case !slices.Contains(names, name):
		case c.Changes:
			p.Actions[name] = c.act
		default:
			p.Reads[name] = c.read
		}
	}
	return p
}

func (c Command) read(ctx context.Context, client *store.Client, q url.Values) (v any, err error) {
	if err := c.check(q, "arg"); err != nil {
		return nil, err
	}
	err = c.Run(ctx, &Env{Client: client, Args: q["arg"], Flags: texts{c.Flags, q}, Print: func(out any, _ func(Table)) error {
		v = out
		return nil
	}})
	return v, err
}

const (
	actPatience = 10 * time.Second
	unnamed     = "dashboard" // who acts without a name
)

// act leaves it to the dashboard to ask, and to audit.
func (c Command) act(ctx context.Context, client *store.Client, body []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, actPatience)
	defer cancel()
	q, err := fieldsOf(body)
	if err == nil {
		err = c.check(q, "arg", "on", "who", "why")
	}
	if err != nil {
		return "", err
	}
	did := &lines{}
	err = c.Run(ctx, &Env{
		Client: client, Who: cmp.Or(q.Get("who"), unnamed), Args: q["arg"], Flags: texts{c.Flags, q},
		Print: func(_ any, text func(Table)) error {
			text(did)
			return nil
		},
		Confirm: func(string, ...any) error { return nil },
		Audited: func(ctx context.Context, _, on string, do func(context.Context) (string, error)) (string, error) {
			if on != q.Get("on") {
				return "", Usagef("this acts on %s, and is asked for on %q", on, q.Get("on"))
			}
			return do(ctx)
		},
	})
	return strings.Join(did.all, "; "), err
}

// fieldsOf returns the fields of an action: texts, numbers and truths as they are written, and lists of these.
func fieldsOf(body []byte) (url.Values, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, Usagef("this is no action: %v", err)
	}
	q := url.Values{}
	for name, raw := range fields {
		list := []json.RawMessage{raw}
		if raw[0] == '[' {
			_ = json.Unmarshal(raw, &list) // it has been read before
		}
		for _, one := range list {
			text := string(one)
			switch one[0] {
			case '{', '[':
				return nil, Usagef("this is no action: %s is %s", name, one)
			case 'n':
				continue
			case '"':
				_ = json.Unmarshal(one, &text)
			}
			q.Add(name, text)
		}
	}
	return q, nil
}

// check returns what is wrong with what a page asks for, beside parameters of these names.
func (c Command) check(q url.Values, names ...string) error {
	for name := range q {
		i := slices.IndexFunc(c.Flags, func(f Flag) bool { return f.Name == name && !f.NoPage })
		var err error
		if i >= 0 {
			switch c.Flags[i].Default.(type) {
			case bool:
				_, err = strconv.ParseBool(q.Get(name))
			case int:
				_, err = strconv.Atoi(q.Get(name))
			case time.Duration:
				_, err = time.ParseDuration(q.Get(name))
			}
		}
		if err != nil || i < 0 && !slices.Contains(names, name) {
			return Usagef("%s has no parameter %s=%s", c.Call, name, q.Get(name))
		}
	}
	return nil
}

// lines are those of a table.
type lines struct{ all []string }

func (l *lines) Row(cells ...any) { l.all = append(l.all, strings.TrimSpace(fmt.Sprintln(cells...))) }
func (l *lines) Linef(format string, args ...any) {
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

// texts are flags as a page gives them.
type texts struct {
	flags []Flag
	given url.Values
}

// valueOf returns the value of a flag: the given one, or the default.
func valueOf[T any](t texts, name string, parse func(string) (T, error)) (v T) {
	if t.given.Has(name) {
		v, _ = parse(t.given.Get(name))
		return v
	}
	for _, f := range t.flags {
		if f.Name == name {
			v, _ = f.Default.(T)
		}
	}
	return v
}

func (t texts) IsSet(name string) bool             { return t.given.Has(name) }
func (t texts) Bool(name string) bool              { return valueOf(t, name, strconv.ParseBool) }
func (t texts) Int(name string) int                { return valueOf(t, name, strconv.Atoi) }
func (t texts) Duration(name string) time.Duration { return valueOf(t, name, time.ParseDuration) }
func (t texts) String(name string) string {
	return valueOf(t, name, func(text string) (string, error) { return text, nil })
}
