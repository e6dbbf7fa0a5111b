package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/test/notes"
)

// noted is a shop whose app has the extension notes.
func noted(t *testing.T, opts *Options) *shop {
	s := newShop(t, 1, opts)
	extension.Register(s.app, notes.New())
	s.server.Config.Handler = Handler(s.app, opts)
	return s
}

func TestPageOfAnExtension(t *testing.T) {
	s := noted(t, &Options{AllowActions: true, Token: secret})
	resp, menu := s.request(http.MethodGet, "/assets/extensions.js", "")
	const want = "import { View as view0 } from \"./extension/notes.js\";\nexport const extensions = [{ route: \"notes\", title: \"Notes\", view: view0 },];\n"
	if menu != want || resp.Header.Get("Content-Type") != contentTypes[".js"] {
		t.Errorf("%s: %s", resp.Header.Get("Content-Type"), menu)
	}
	resp, module := s.request(http.MethodGet, "/assets/extension/notes.js", "")
	if resp.StatusCode != http.StatusOK || !strings.Contains(module, "export function View(") || forbidden.MatchString(module) {
		t.Errorf("%d %s", resp.StatusCode, module)
	}
	for _, imported := range []string{"vendor/preact-htm.module.js", "api.js", "dialog.js", "parts.js"} {
		if _, there := embeddedAssets()[imported]; !there || !strings.Contains(module, `"../`+imported+`"`) {
			t.Errorf("the page imports no %s", imported)
		}
	}
	if all := get[map[string]string](s, "/api/notes/list"); len(all) != 0 {
		t.Errorf("%v", all)
	}
	s.did("notes/add", `{"on": "gate", "arg": ["gate", "mind the step"], "who": "Ada", "why": "ice"}`, http.StatusOK, "note gate added")
	if all := get[map[string]string](s, "/api/notes/list"); all["gate"] != "mind the step" {
		t.Errorf("%v", all)
	}
	s.did("notes/add", `{"on": "gate"}`, http.StatusBadRequest, "a note needs a name and a text")
	s.did("notes/add", `[]`, http.StatusBadRequest, "this is no action")
	s.did("notes/burn", `{}`, http.StatusNotFound, `there is no action "notes/burn"`)
	s.did("none/add", `{}`, http.StatusNotFound, `there is no action "none/add"`)
	audit := get[listedAside[inspect.AuditState]](s, "/api/audit").List
	if len(audit) != 2 || audit[1].What != "notes/add" || audit[1].On != "gate" || audit[1].Who != "Ada" || audit[1].Why != "ice" || audit[1].Outcome != "done" || audit[0].Outcome != "failed" {
		t.Errorf("%+v", audit)
	}
	if resp, _ := s.request(http.MethodGet, "/api/notes/none", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a read that is not there: %d", resp.StatusCode)
	}
	body := `{"on": "gate", "arg": ["gate", "x"]}`
	for name, headers := range map[string][]string{
		"no token":     {actionHeader, "1", "Content-Type", "application/json"},
		"wrong token":  {actionHeader, "1", "Content-Type", "application/json", "Authorization", "Bearer guess"},
		"another page": {"Content-Type", "application/json", "Authorization", "Bearer " + secret},
		"no JSON":      {actionHeader, "1", "Authorization", "Bearer " + secret},
	} {
		if resp, text := s.request(http.MethodPost, "/api/actions/notes/add", body, headers...); resp.StatusCode < 400 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
	if all := get[map[string]string](s, "/api/notes/list"); all["gate"] != "mind the step" {
		t.Errorf("a refused action was done: %v", all)
	}
}

// A page asks a command for what that takes, and is audited for what it acts on.
func TestActionsThatAreCommands(t *testing.T) {
	s := noted(t, &Options{AllowActions: true, Token: secret})
	for body, wrong := range map[string]string{
		`{"on": "other", "arg": ["gate", "x"]}`:               `this acts on gate, and is asked for on "other"`,
		`{"on": "gate", "arg": ["gate", {"text": "x"}]}`:      "this is no action: arg is",
		`{"on": "gate", "arg": ["gate", "x"], "burn": true}`:  "has no parameter burn=true",
		`{"on": "gate", "arg": ["gate", "x"], "sign": ["a"]]`: "this is no action",
	} {
		s.did("notes/add", body, http.StatusBadRequest, wrong)
	}
	s.did("notes/add", `{"on": "gate", "arg": ["gate", 1234567890123], "who": null}`, http.StatusOK, "note gate added")
	if all := get[map[string]string](s, "/api/notes/list"); all["gate"] != "1234567890123" {
		t.Errorf("%v", all)
	}
}

func TestActionsOfExtensionsNeedActions(t *testing.T) {
	s := noted(t, nil)
	if code, _ := s.act("notes/add", `{"on": "gate", "arg": ["gate", "x"]}`); code != http.StatusMethodNotAllowed {
		t.Errorf("a dashboard that only reads: %d", code)
	}
}

// The menu of a dashboard without the app's code has the pages of which Redis has something.
func TestMenuShowsWhatIsThere(t *testing.T) {
	extension.Known(notes.New())
	s := newShop(t, 1, nil)
	server := httptest.NewServer(Handler(runnel.New("shop", &runnel.Options{RedisURL: s.redis.URL()}), nil))
	t.Cleanup(server.Close)
	s.server = server
	shows := func() bool {
		_, menu := s.request(http.MethodGet, "/assets/extensions.js", "")
		return strings.Contains(menu, `"Notes"`)
	}
	if shows() {
		t.Error("notes show where there are none")
	}
	_, err := notes.Add(t.Context(), s.c, "gate", "x")
	s.must(err)
	if !shows() {
		t.Error("notes do not show")
	}
}

// A rule for a part of an extension is not called absent.
func TestRulesOfPartsAreThere(t *testing.T) {
	s := noted(t, &Options{AllowActions: true, Token: secret})
	s.did("pause", `{"scope": "processor:board/pins"}`, http.StatusOK, "pause of processor:board/pins")
	s.did("pause", `{"scope": "processor:board/wall"}`, http.StatusOK, "pause of processor:board/wall")
	sample := await(s.watch(""), "sample", func(a shownApp) bool { return len(a.Rules) == 2 })
	for _, r := range sample.Rules {
		if want := r.Scope == "processor:board/wall"; r.Absent != want {
			t.Errorf("%s is absent: %v", r.Scope, r.Absent)
		}
	}
}

// What failed at a part is listed, retried and dropped as dead letters of a processor are.
func TestDeadOfAPart(t *testing.T) {
	s := noted(t, &Options{AllowActions: true, Token: secret})
	for _, name := range []string{"door", "gate", "wall"} {
		s.must(notes.Tear(t.Context(), s.c, name, "wind took the "+name))
	}
	dead := func(query string) listedAside[extension.Failure] {
		return get[listedAside[extension.Failure]](s, "/api/dead?processor=board/pins"+query)
	}
	if l := dead("&limit=2"); len(l.List) != 2 || !l.More || l.List[0].ID != "door" || l.List[0].Error != "wind took the door" {
		t.Errorf("%+v", l)
	}
	if l := dead("&id=gate&error=WIND&partition=0"); len(l.List) != 1 || l.List[0].Key != "gate" {
		t.Errorf("%+v", l)
	}
	if l := get[listedAside[extension.Failure]](s, "/api/parked?processor=board/pins"); len(l.List) != 0 {
		t.Errorf("parked: %+v", l)
	}
	s.did("retry-dead", `{"processor": "board/pins", "ids": ["gate"]}`, http.StatusOK, "1 dead letter retried")
	s.did("drop", `{"processor": "board/pins", "ids": ["door", "gate"]}`, http.StatusOK, "1 dead letter dropped")
	s.did("drop", `{"processor": "board/pins", "ids": ["door"]}`, http.StatusConflict, "none of them is there any more")
	s.did("drop-parked", `{"processor": "board/pins", "ids": ["door"]}`, http.StatusBadRequest, "board/pins has none")
	s.did("replay", `{"processor": "board/pins", "ids": ["0/1-1"]}`, http.StatusNotFound, "board")
	if l := dead(""); len(l.List) != 1 || l.List[0].ID != "wall" {
		t.Errorf("%+v", l)
	}
}
