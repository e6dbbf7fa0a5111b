package sets

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

//go:embed page.js
var module []byte

// pageBytes bounds the entity that the page shows as JSON.
const pageBytes = 256 << 10

// page is the page of the dashboard. Its rows pause stages, and retry visits, by the actions of the core.
func page(p Process) *extension.Page {
	act := func(ctx context.Context, c *store.Client, body []byte) (string, error) { return act(ctx, c, p, body) }
	return &extension.Page{
		Title: "Sets", Module: module,
		Reads: map[string]func(context.Context, *store.Client, url.Values) (any, error){
			"list": func(ctx context.Context, c *store.Client, _ url.Values) (any, error) {
				all, err := states(ctx, c, "")
				return append([]*State{}, all...), err
			},
			"entity": func(ctx context.Context, c *store.Client, q url.Values) (any, error) {
				s, err := one(ctx, c, p, q.Get("set"))
				if err != nil {
					return nil, err
				}
				e, err := s.show(ctx, q.Get("id"), pageBytes)
				if err != nil {
					return nil, err
				}
				text := string(e.Value) // a page that parsed it would round numbers
				e.Value = nil
				return shown{e, text}, nil
			},
		},
		Actions: map[string]func(context.Context, *store.Client, []byte) (string, error){
			"touch": act, "visit": act,
		},
	}
}

// A shown is an entity as the page shows it.
type shown struct {
	*EntityState
	Text string // of Value
}

// act has a stage visit an entity now, or touches it: its field on is SET/STAGE or SET.
func act(ctx context.Context, c *store.Client, p Process, body []byte) (string, error) {
	var do struct{ On, ID string }
	if err := json.Unmarshal(body, &do); err != nil || do.ID == "" {
		return "", extension.Usagef("this needs SET or SET/STAGE, and an ID")
	}
	name, of, is := strings.Cut(do.On, "/")
	s, err := one(ctx, c, p, name)
	if err == nil && is {
		err = s.stage(of)
	}
	if err != nil {
		return "", err
	}
	if !is {
		of = stage.Touch
	}
	return s.visits(ctx, do.On, of, stage.In(0), []string{do.ID})
}

// visits puts visits of IDs, and returns what it did.
func (s *set) visits(ctx context.Context, on, name string, due stage.Due, ids []string) (string, error) {
	for _, id := range ids {
		n, err := s.partition(id)
		if err == nil {
			err = s.calls.Visit(ctx, n, name, due, id)
		}
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s of %s to be visited", words.Plural(len(ids), "ID"), on), nil
}
