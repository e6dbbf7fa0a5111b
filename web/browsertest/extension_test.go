package browsertest

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/test/notes"
	"github.com/runnel-go/runnel/web"
)

// The page of an extension stands in the menu; it reads and acts as the dashboard's own do.
func TestThePageOfAnExtension(t *testing.T) {
	s, b := newShop(t), newBrowser(t)
	extension.Register(s.app, notes.New())
	_, err := notes.Add(t.Context(), s.client, "door", evil)
	s.must(err)
	server := httptest.NewServer(web.Handler(s.app, &web.Options{Every: 500 * time.Millisecond, AllowActions: true, Token: token}))
	defer server.Config.Shutdown(t.Context()) // ends its streams
	b.open(server.URL + "/")
	b.await("a link in the menu", `[...document.querySelectorAll("nav a")].some((a) => a.textContent === "Notes")`)
	b.goTo("notes")
	b.await("a note", `document.querySelector("main td")?.textContent.includes("onerror")`)
	b.click("Add")
	b.confirm(token, "ice", "Add")
	b.await("what was done", `document.querySelector(".told")?.textContent.startsWith("note gate added")`)
	b.await("the note", `document.querySelectorAll("main tbody tr").length === 2`)
	b.clean(server.URL)
}
