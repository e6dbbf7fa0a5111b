package views

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/web"
)

// A shown is the part of the dashboard's data that has numbers.
type shown struct {
	Streams []struct {
		Stream, Codec             string
		Length, Appended, Delayed int64
		Rate                      *float64
		Processors                []struct {
			Processor       string
			Paused, Blocked int
			Done            *float64
			Totals          struct {
				Lag, Pending, Parked, Retrying, Dead, Lost, Delayed, Length int64
				Owned, Quarantined, Unknown                                 int
			}
			Members []struct {
				Worker string
				Alive  bool
				Owned  int
			}
		}
	}
	Detail struct {
		Owners                                                 []string
		Owner                                                  []int
		Lag, Pending, Delayed, Parked, Dead, Lost, Length, Age []int64
		Notes                                                  map[int]struct {
			Held       string
			Quarantine *struct{ Reason string }
		}
	}
}

// dashboard compares the data of the dashboard's pages with the truth.
func (s *scene) dashboard(t *testing.T) {
	server := httptest.NewServer(web.Handler(s.app, nil))
	defer server.Close()
	for processor, want := range s.truth {
		var got shown
		s.decode(s.sample(t, server.URL+"/api/live?processor=orders/"+processor), &got)
		for n := range want {
			d := &got.Detail
			told := number{lag: d.Lag[n], pending: d.Pending[n], parked: d.Parked[n], retrying: want[n].retrying, dead: d.Dead[n],
				owned: d.Owner[n] >= 0, held: d.Notes[n].Held, quarantined: d.Notes[n].Quarantine != nil}
			if told != want[n] {
				t.Errorf("%s, partition %d: got %+v, want %+v", processor, n, told, want[n])
			}
			if d.Length[n] != lengths[n] || d.Delayed[n] != delayed[n] || d.Lost[n] != 0 || (d.Age[n] > 0) != (want[n].lag > 0) {
				t.Errorf("%s, partition %d: length %d, delayed %d, lost %d, age %d", processor, n, d.Length[n], d.Delayed[n], d.Lost[n], d.Age[n])
			}
		}
		stream := got.Streams[0]
		if stream.Length != 48 || stream.Appended != 50 || stream.Delayed != 2 {
			t.Errorf("%+v", stream)
		}
		s.overview(t, &got)
	}
}

// overview is the same on every page.
func (s *scene) overview(t *testing.T, got *shown) {
	t.Helper()
	for _, p := range got.Streams[0].Processors {
		all, of := total(s.truth[p.Processor]), s.truth[p.Processor]
		told := number{lag: p.Totals.Lag, pending: p.Totals.Pending, parked: p.Totals.Parked, retrying: p.Totals.Retrying, dead: p.Totals.Dead}
		owned, paused := sum(of, func(n number) int64 { return oneIf(n.owned) }), sum(of, func(n number) int64 { return oneIf(n.held == "pause") })
		if told != all || int64(p.Totals.Owned) != owned || int64(p.Paused) != paused || p.Blocked != 0 {
			t.Errorf("%s: %+v, %d owned, %d paused, %d blocked; want %+v, %d, %d", p.Processor, told, p.Totals.Owned, p.Paused, p.Blocked, all, owned, paused)
		}
		var members []string
		for _, m := range p.Members {
			members = append(members, fmt.Sprintf("%s alive=%v owned=%d", m.Worker, m.Alive, m.Owned))
		}
		want := "w1 alive=true owned=2, w2 alive=true owned=2"
		if p.Processor == "billing" {
			want = "w3 alive=false owned=0"
		}
		if strings.Join(members, ", ") != want {
			t.Errorf("%s: members %q, want %s", p.Processor, members, want)
		}
	}
}

// sample returns the first sample sent to a page.
func (s *scene) sample(t *testing.T, url string) json.RawMessage {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for name := ""; lines.Scan(); {
		if event, is := strings.CutPrefix(lines.Text(), "event: "); is {
			name = event
		}
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is && name == "sample" {
			return json.RawMessage(data)
		}
	}
	t.Fatalf("no sample from %s: %v", url, lines.Err())
	return nil
}
