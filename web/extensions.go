package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

// pages returns the pages of the app's extensions, by extension.
func (d *dashboard) pages() map[string]*extension.Page {
	pages := map[string]*extension.Page{}
	for _, e := range extension.All(d.own) {
		if e.Page != nil {
			pages[e.Name] = e.Page
		}
	}
	return pages
}

// extensionPages serves extensions.js, which imports the pages that the menu shows: of the extensions that
// the app has. Without an answer of Redis these are the registered ones.
func (d *dashboard) extensionPages(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askPatience)
	defer cancel()
	c, clientErr := d.reg.Client()
	var imports, list strings.Builder
	for i, e := range extension.All(d.own) {
		there := e.Registered
		if !there && clientErr == nil {
			there, _ = e.There(ctx, c)
		}
		if e.Page == nil || !there {
			continue
		}
		title, err := json.Marshal(e.Page.Title)
		if err != nil {
			continue // no text
		}
		fmt.Fprintf(&imports, "import { View as view%d } from \"./extension/%s.js\";\n", i, e.Name)
		fmt.Fprintf(&list, "{ route: %q, title: %s, view: view%d },", e.Name, title, i)
	}
	assets{"extensions.js": newAsset("extensions.js", fmt.Appendf(nil, "%sexport const extensions = [%s];\n", imports.String(), list.String()))}.serve(w, r, "extensions.js")
}

// actExtension does an action of an extension's page.
func (d *dashboard) actExtension(w http.ResponseWriter, r *http.Request) {
	if code, err := d.guard.admit(r); err != nil {
		refuse(w, code, err)
		return
	}
	what := r.PathValue("extension") + "/" + r.PathValue("name")
	page := d.pages()[r.PathValue("extension")]
	if page == nil || page.Actions[r.PathValue("name")] == nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no action %q", what))
		return
	}
	body, err := bodyOf(w, r)
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	var by struct{ Who, Why, On string }
	if err := json.Unmarshal(body, &by); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("this is no action: %w", err))
		return
	}
	note := store.Audit{
		Who: cut(by.Who, mostWho).Text, From: fromOf(r), What: what, On: cut(by.On, mostOn).Text, Why: cut(by.Why, mostWhy).Text,
		Detail: cut(string(body), recordInList).Text,
	}
	d.perform(w, r, note, func(ctx context.Context, c *store.Client) (string, error) {
		return page.Actions[r.PathValue("name")](ctx, c, body)
	})
}
