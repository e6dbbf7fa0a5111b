package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/guesses"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

func acting(t *testing.T) *shop { return newShop(t, 1, &Options{AllowActions: true, Token: secret}) }

func (s *shop) dead() listedAside[letter] {
	s.t.Helper()
	return get[listedAside[letter]](s, "/api/dead?processor=orders/printer")
}

func TestReplayAndDrop(t *testing.T) {
	s := acting(t)
	o := s.own("ada", "bob", "cyd")
	for i, key := range []string{"ada", "bob", "cyd"} {
		o.bury(i, key, "no "+key)
	}
	s.did("retry-dead", fmt.Sprintf(`{"processor": "orders/printer", "ids": [%q]}`, s.dead().List[0].ID), http.StatusOK, "1 dead letter retried")
	if parked := get[listedAside[admin.ParkedEvent]](s, "/api/parked?processor=orders/printer").List; len(parked) != 1 || parked[0].State != admin.ParkedDue || parked[0].Attempts != 0 {
		t.Errorf("parked %+v", parked)
	}
	o.bury(0, "ada", "no ada") // it fails again
	list := s.dead().List
	name := func(i int) string { return list[i].ID }
	s.did("replay", fmt.Sprintf(`{"processor": "orders/printer", "ids": [%q, %q], "who": "Ada", "why": "mended"}`, name(2), name(0)), http.StatusOK, "2 dead letters replayed")
	events := get[listedEvents](s, "/api/events?stream=orders&limit=2").Events
	if len(events) != 2 || *events[0].Key != "cyd" || *events[1].Key != "ada" { // the newest first
		t.Errorf("%+v", events)
	}
	s.did("drop", fmt.Sprintf(`{"processor": "orders/printer", "ids": [%q]}`, name(1)), http.StatusOK, "1 dead letter dropped")
	if left := s.dead().List; len(left) != 0 {
		t.Errorf("%+v are left", left)
	}
	s.did("drop", fmt.Sprintf(`{"processor": "orders/printer", "ids": [%q]}`, name(1)), http.StatusConflict, "none of them is there any more")
	audit := get[listedAside[inspect.AuditState]](s, "/api/audit").List
	if len(audit) != 4 {
		t.Fatalf("%+v", audit)
	}
	for i, want := range []string{
		"failed drop orders/printer from 127.0.0.1: none of them is there any more", "done drop orders/printer from 127.0.0.1: 1 dead letter dropped",
		"done replay orders/printer from 127.0.0.1: 2 dead letters replayed",
	} {
		a := audit[i]
		if got := fmt.Sprintf("%s %s %s from %s: %s", a.Outcome, a.What, a.On, a.From, a.Result); got != want || a.Ended == nil {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if a := audit[2]; a.Who != "Ada" || a.Why != "mended" || a.Detail != name(2)+" "+name(0) {
		t.Errorf("%+v", a)
	}
}

func TestParkedAndDelayed(t *testing.T) {
	s := acting(t)
	o := s.own("ada", "bob")
	o.park(0, "ada")
	o.park(1, "bob")
	parked := func() []admin.ParkedEvent {
		return get[listedAside[admin.ParkedEvent]](s, "/api/parked?processor=orders/printer").List
	}
	list := parked()
	if len(list) != 2 || list[0].State != admin.ParkedWaiting || list[0].Error != "no ink" {
		t.Fatalf("%+v", list)
	}
	body := func(i int) string {
		return fmt.Sprintf(`{"processor": "orders/printer", "ids": ["%s"]}`, list[i].Event)
	}
	s.did("retry-now", body(0), http.StatusOK, "1 event due now")
	if parked()[0].State != admin.ParkedDue {
		t.Error("retry-now: not done")
	}
	s.did("drop-parked", body(1), http.StatusOK, "1 event given up")
	if len(parked()) != 1 {
		t.Error("drop-parked: not done")
	}
	for i := range 2 {
		_, err := s.orders.SendAfter(t.Context(), time.Duration(i+1)*time.Hour, order{Customer: "ada"})
		s.must(err)
	}
	delayed := func() []delayedEvent { return get[listedAside[delayedEvent]](s, "/api/delayed?stream=orders").List }
	waiting := delayed()
	if len(waiting) != 2 || waiting[0].Record == nil || waiting[0].Key != "ada" {
		t.Fatalf("%+v", waiting)
	}
	s.did("fire", fmt.Sprintf(`{"stream": "orders", "ids": [%q]}`, waiting[1].ID), http.StatusOK, "1 event due now")
	if delayed()[0].ID != waiting[1].ID {
		t.Error("fire: not done")
	}
	s.did("cancel", fmt.Sprintf(`{"stream": "orders", "ids": [%q]}`, waiting[0].ID), http.StatusOK, "1 event cancelled")
	if len(delayed()) != 1 {
		t.Error("cancel: not done")
	}
}

func TestRulesAndResume(t *testing.T) {
	s := acting(t)
	s.did("pause", `{"scope": "processor:orders/printer", "for": "10m", "who": "Ada", "why": "no paper"}`, http.StatusOK, "pause of processor:orders/printer by Ada@127.0.0.1 until ")
	s.act("block", `{"scope": "app"}`)
	in, err := inspect.Rules(t.Context(), s.c)
	s.must(err)
	if len(in) != 2 {
		t.Errorf("%+v", in)
	}
	s.act("resume", `{"scope": "processor:orders/printer"}`)
	s.did("resume", `{"scope": "processor:orders/printer"}`, http.StatusOK, "there was no pause of processor:orders/printer")
	s.act("unblock", `{"scope": "app"}`)
	if in, err = inspect.Rules(t.Context(), s.c); err != nil || len(in) != 0 {
		t.Errorf("%+v, %v", in, err)
	}
	o := s.own("ada")
	const partition = `{"processor": "orders/printer", "partition": 0, "skip": true}`
	s.did("release", partition, http.StatusConflict, "it is not quarantined")
	s.must(s.c.Quarantine(t.Context(), o.place, o.tenure, store.Quarantine{Reason: "failed", Event: o.entries[0].ID, Worker: "alpha", At: 1}))
	s.did("release", partition, http.StatusOK, "resumed, event 0/"+o.entries[0].ID+" is passed over")
}

// An action that the audit cannot record is not done.
func TestNothingIsDoneWithoutAudit(t *testing.T) {
	s := acting(t)
	s.must(s.c.Redis().Set(t.Context(), s.c.Keys().Audit(), "no stream", 0).Err())
	s.did("pause", `{"scope": "app"}`, http.StatusBadGateway, "nothing was done, since it could not be noted: ")
	if in, err := inspect.Rules(t.Context(), s.c); err != nil || len(in) != 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestBadActions(t *testing.T) {
	s := acting(t)
	for _, tt := range []struct {
		name, body string
		code       int
		err        string
	}{
		{"dance", `{}`, 404, `there is no action "dance"`},
		{"pause", `{`, 400, "this is no action"},
		{"pause", `{"scope": "app", "sudo": true}`, 400, "unknown field"},
		{"pause", `{"scope": "galaxy"}`, 400, "galaxy"},
		{"pause", `{"scope": "app", "for": "long"}`, 400, `"long" is no time`},
		{"pause", `{"scope": "app", "for": "-1s"}`, 400, `"-1s" is no time`},
		{"pause", `{"scope": "app", "why": "` + strings.Repeat("x", mostBody) + `"}`, 413, "too large"},
		{"release", `{"processor": "orders/printer"}`, 400, "which partition?"},
		{"release", `{"processor": "orders/printer", "partition": 1}`, 400, "has no partition 1"},
		{"replay", `{"processor": "orders/printer"}`, 400, "which events?"},
		{"replay", `{"processor": "orders/printer", "ids": ["1/5-0"]}`, 400, "is no event"},
		{"replay", `{"processor": "orders/printer", "ids": ["0/x"]}`, 400, "is no event"},
		{"replay", `{"processor": "orders/none", "ids": ["0/5-0"]}`, 404, "no processor"},
		{"drop", `{"processor": "none/printer", "ids": ["0/5-0"]}`, 404, "no stream"},
		{"drop", `{"processor": "orders", "ids": ["0/5-0"]}`, 400, "which processor?"},
		{"cancel", `{"stream": "orders", "ids": ["5-0"]}`, 400, "is no delayed event"},
		{"fire", `{"stream": "orders"}`, 409, "none of them waits any more"},
		{"drop", `{"ids": [` + strings.Repeat(`"0/1-1",`, mostChosen) + `"0/1-1"]}`, 400, "at most 500 events"},
	} {
		t.Run(tt.name+" "+tt.err, func(t *testing.T) {
			s.did(tt.name, tt.body, tt.code, tt.err)
		})
	}
	resp, _ := s.request(http.MethodPost, "/api/actions/pause", `{"scope": "app"}`, actionHeader, "1", "Authorization", "Bearer "+secret)
	if resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("without a content type: %d", resp.StatusCode)
	}
	if in, err := inspect.Rules(t.Context(), s.c); err != nil || len(in) != 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestToken(t *testing.T) {
	s := acting(t)
	try := func(token string) int {
		resp, _ := s.request(http.MethodPost, "/api/token", "", actionHeader, "1", "Authorization", "Bearer "+token)
		return resp.StatusCode
	}
	if code := try(secret); code != http.StatusNoContent {
		t.Errorf("the right token: %d", code)
	}
	for range guesses.Wrong {
		if code := try("guess"); code != http.StatusUnauthorized {
			t.Errorf("a wrong token: %d", code)
		}
	}
	resp, _ := s.request(http.MethodPost, "/api/token", "", actionHeader, "1", "Authorization", "Bearer "+secret)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "60" {
		t.Errorf("token: %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if code, _ := s.act("pause", `{"scope": "app"}`); code != http.StatusTooManyRequests {
		t.Errorf("after many wrong ones: %d", code)
	}
}

// Events are listed newest first over all partitions; a key selects its partition.
func TestEvents(t *testing.T) {
	s := newShop(t, 8, nil)
	evil := `<script>alert("x")</script>` + strings.Repeat("é", recordInList)
	for i := range 30 {
		s.must(s.orders.Send(t.Context(), order{Customer: fmt.Sprint("c", i%10), Note: fmt.Sprint("note ", i)}))
	}
	<-time.After(5 * time.Millisecond) // partitions are compared by milliseconds
	s.must(s.orders.Send(t.Context(), order{Customer: "eve", Note: evil}))
	all := get[listedEvents](s, "/api/events?stream=orders")
	if len(all.Events) != 31 || !all.Complete || *all.Events[0].Key != "eve" {
		t.Fatalf("%+v", all)
	}
	for i := 1; i < len(all.Events); i++ {
		if all.Events[i-1].At < all.Events[i].At {
			t.Errorf("%+v stands before %+v", all.Events[i-1], all.Events[i])
		}
	}
	r := all.Events[0].Record
	if r == nil || r.Size <= recordInList || len(r.Text) > recordInList || !strings.Contains(r.Text, `<script>alert(\"x\")</script>`) || strings.ContainsRune(r.Text, '\uFFFD') {
		t.Errorf("%+v", r)
	}
	e := all.Events[0]
	if one := get[listedEvents](s, "/api/events?stream=orders&id="+e.ID); len(one.Events) != 1 || one.Events[0].Record.Size != len(one.Events[0].Record.Text) {
		t.Errorf("%+v", one)
	}
	if gone := get[listedEvents](s, fmt.Sprintf("/api/events?stream=orders&id=%d/1-1", e.Partition)); len(gone.Events) != 0 {
		t.Errorf("%+v", gone)
	}
	of := get[listedEvents](s, "/api/events?stream=orders&key=c3")
	if n := runnel.XXHash.Func("c3", 8); len(of.Events) != 3 || of.Events[0].Partition != n || of.Searched == 31 {
		t.Errorf("%+v", of)
	}
	if none := get[listedEvents](s, "/api/events?stream=orders&key="); len(none.Events) != 0 {
		t.Errorf("the empty key: %+v", none)
	}
	if few := get[listedEvents](s, "/api/events?stream=orders&limit=5"); len(few.Events) != 5 || few.Complete || few.Events[4].ID != all.Events[4].ID {
		t.Errorf("%+v", few)
	}
	for _, query := range []string{"", "stream=orders&limit=0", "stream=orders&limit=501", "stream=orders&partition=8", "stream=orders&partition=-1", "stream=orders&id=5-0", "stream=orders&id=8/5-0", "stream=orders&id=x"} {
		if resp, text := s.request(http.MethodGet, "/api/events?"+query, ""); resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", query, resp.StatusCode, text)
		}
	}
}

func TestDeadLetters(t *testing.T) {
	s := newShop(t, 1, nil)
	o := s.own("ada", "bob")
	o.bury(0, "ada", strings.Repeat("no paper ", 1000))
	o.bury(1, "bob", "no ink")
	list := s.dead()
	if len(list.List) != 2 || list.More || len(list.List[0].Error) > recordInList || list.List[0].Record != nil {
		t.Errorf("%+v", list)
	}
	if some := get[listedAside[letter]](s, "/api/dead?processor=orders/printer&limit=1"); len(some.List) != 1 || !some.More {
		t.Errorf("%+v", some)
	}
	if inky := get[listedAside[letter]](s, "/api/dead?processor=orders/printer&error=INK"); len(inky.List) != 1 || inky.List[0].Key != "bob" {
		t.Errorf("%+v", inky)
	}
	one := get[listedAside[letter]](s, "/api/dead?processor=orders/printer&id="+list.List[0].ID).List
	if len(one) != 1 || one[0].Record == nil || !strings.Contains(one[0].Record.Text, `"customer":"ada"`) || len(one[0].Fields) == 0 || len(one[0].Error) <= recordInList {
		t.Errorf("%+v", one)
	}
}
