package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/keys"
)

// A number holds the known numbers of one partition of a processor.
type number struct {
	lag, pending, parked, retrying, dead int64
	owned                                bool
	held                                 string
	quarantined                          bool
}

var (
	fine = number{owned: true}
	// read and held back
	paused = func(n int64) number { return number{lag: n, pending: n, owned: true, held: "pause"} }
	// left by a worker that died in the middle, and later ones
	orphaned = func(pending, later int64) number { return number{lag: pending + later, pending: pending} }
)

// truth returns the known numbers of the scene, by processor and partition.
func truth(reads string) map[string][4]number {
	all := map[string][4]number{
		"printer":  {fine, {dead: 1, owned: true}, fine, fine},
		"invoicer": {fine, fine, {parked: 3, retrying: 1, owned: true}, fine},
		"auditor":  {fine, fine, fine, {lag: 6, pending: 6, owned: true, quarantined: true}},
		"mailer":   {paused(15), paused(11), paused(13), paused(11)}, // two of the 15 were deleted after they were read
		"billing":  {orphaned(10, 4), orphaned(11, 0), orphaned(13, 0), orphaned(11, 0)},
	}
	if reads == "position" { // Redis knows the position, and counts what is there behind it
		for processor, of := range all {
			for n := range of {
				of[n].pending = -1 // unknown, which tables show as a dash
			}
			all[processor] = of
		}
		mailer, billing := all["mailer"], all["billing"]
		mailer[0].lag, billing[0].lag = 13, 13 // without what was deleted, which by group is pending
		all["mailer"], all["billing"] = mailer, billing
	}
	return all
}

var (
	lengths  = [4]int64{13, 11, 13, 11} // of the partitions: two entries of the first were deleted
	appended = [4]int64{15, 11, 13, 11}
	delayed  = [4]int64{2, 0, 0, 0}
)

func sum(of [4]number, what func(number) int64) (n int64) {
	for _, one := range of {
		n += what(one)
	}
	return n
}

// TestEverySurfaceTellsTheTruth checks all surfaces against one scene, with owners that read by group and by position.
func TestEverySurfaceTellsTheTruth(t *testing.T) {
	for _, layout := range []string{keys.Standalone, keys.Cluster} {
		for _, reads := range []string{"group", "position"} {
			t.Run(layout+"/"+reads, func(t *testing.T) {
				s := play(t, layout, reads)
				t.Run("status", s.status)
				t.Run("members", s.membersTold)
				t.Run("check", s.checked)
				t.Run("metrics", s.metrics)
				t.Run("dashboard", s.dashboard)
				t.Run("golden", s.golden)
			})
		}
	}
}

func (s *scene) status(t *testing.T) {
	var state inspect.AppState
	s.run(&state, "status")
	if len(state.Streams) != 1 || len(state.Streams[0].Processors) != len(s.truth) {
		t.Fatalf("%+v", state)
	}
	stream := state.Streams[0]
	if stream.Length != 48 || stream.Appended != 50 || stream.Delayed != 2 {
		t.Errorf("length %d, appended %d, delayed %d, want 48, 50, 2", stream.Length, stream.Appended, stream.Delayed)
	}
	for _, p := range stream.Processors {
		want := s.truth[p.Processor]
		for n, got := range p.Partitions {
			if told := told(got); told != want[n] {
				t.Errorf("%s, partition %d: got %+v, want %+v", p.Processor, n, told, want[n])
			}
			if got.Length != lengths[n] || got.Appended != appended[n] || got.Delayed != delayed[n] || got.Lost != 0 || got.Err != "" {
				t.Errorf("%s, partition %d: %+v", p.Processor, n, got)
			}
			if (got.Age > 0) != (got.Lag > 0) {
				t.Errorf("%s, partition %d: lag %d, age %d", p.Processor, n, got.Lag, got.Age)
			}
		}
		pending := fmt.Sprint(total(want).pending)
		if s.reads == "position" {
			pending = "-"
		}
		for _, args := range [][]string{{"status", "orders/" + p.Processor}, {"processor", "info", "orders/" + p.Processor}, {"processor", "ls", "orders"}} {
			if got := s.cell(args, "PENDING", p.Processor); got != pending {
				t.Errorf("%s, %q: pending %s, want %s", p.Processor, args, got, pending)
			}
		}
		if got, want := told(inspect.PartitionState{Lag: p.Totals.Lag, Pending: p.Totals.Pending, Parked: p.Totals.Parked, Retrying: p.Totals.Retrying, Dead: p.Totals.Dead}), total(want); got != want {
			t.Errorf("%s: totals %+v, want %+v", p.Processor, got, want)
		}
	}
}

// cell returns what a table has in a column, in the row of a processor or that of the sums.
func (s *scene) cell(args []string, column, processor string) string {
	s.t.Helper()
	var out bytes.Buffer
	if code := cli.Main(s.t.Context(), s.app, args, strings.NewReader(""), &out, &out); code != 0 {
		s.t.Fatalf("%q: code %d: %s", args, code, out.String())
	}
	at := -1
	for line := range strings.Lines(out.String()) {
		if n := strings.Index(line, column); n >= 0 {
			at = n
		} else if at >= 0 && (strings.HasPrefix(line, "total ") || strings.HasPrefix(line, "orders/"+processor+" ")) {
			return strings.Fields(line[at:])[0]
		}
	}
	s.t.Fatalf("no %s of %s:\n%s", column, processor, out.String())
	return ""
}

func told(p inspect.PartitionState) number {
	return number{p.Lag, p.Pending, p.Parked, p.Retrying, p.Dead, p.Executor != "", p.Held, p.Quarantine != nil}
}

func total(of [4]number) (all number) {
	for _, n := range of {
		all.lag, all.pending, all.parked, all.retrying, all.dead = all.lag+n.lag, max(all.pending+n.pending, -1), all.parked+n.parked, all.retrying+n.retrying, all.dead+n.dead
	}
	return all
}

// w3 is shown as dead until a worker joins its processor; the others share the rest.
func (s *scene) membersTold(t *testing.T) {
	var got []string
	for _, m := range s.members() {
		got = append(got, fmt.Sprintf("%s/%s alive=%v assigned=%d owned=%d", m.Worker, m.Processor, m.Alive, len(m.Assigned), len(m.Owned)))
	}
	want := []string{"w1/auditor alive=true assigned=2 owned=2", "w2/auditor alive=true assigned=2 owned=2", "w3/billing alive=false assigned=4 owned=0"}
	for _, p := range []string{"invoicer", "mailer", "printer"} {
		want = append(want, "w1/"+p+" alive=true assigned=2 owned=2", "w2/"+p+" alive=true assigned=2 owned=2")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("members:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Limits at the true number hold; those below it do not.
func (s *scene) checked(t *testing.T) {
	for processor, of := range s.truth {
		lag := sum(of, func(n number) int64 { return n.lag })
		for most, want := range map[int64]bool{lag: false, lag - 1: true} {
			if most < 0 {
				continue
			}
			text := string(s.run(nil, "check", "orders/"+processor, "--max-lag", strconv.FormatInt(most, 10)))
			if got := strings.Contains(text, "lag "+strconv.FormatInt(lag, 10)); got != want {
				t.Errorf("check of %s with a limit of %d: %s", processor, most, text)
			}
		}
	}
}

// The metrics of live workers add up to the numbers of what they own; each event was counted once.
func (s *scene) metrics(t *testing.T) {
	s.await("a look at Redis after the deletion: one serves the scrapes of a second", func() bool {
		return s.sum("lag_events", "mailer") == float64(total(s.truth["mailer"]).lag)
	})
	sums := map[string]float64{}
	for _, url := range s.urls {
		for name, value := range s.scrape(url) {
			sums[name] += value
		}
	}
	for processor, of := range s.truth {
		all := total(of)
		want := map[string]int64{
			"lag_events": all.lag, "pending_events": max(all.pending, 0), "stored_parked_events": all.parked, "stored_dead_letters": all.dead,
			"stored_delayed_events": 2, "owned_partitions": 4, "quarantined_partitions": sum(of, func(n number) int64 { return oneIf(n.quarantined) }),
			"unknown_partitions": 0, "lost_events_total": 0, "dead_events_total": all.dead, "parked_events_total": all.parked,
			"fetched_events_total": 50, "repeated_events_total": 0, "fenced_requests_total": 0, "lag_at_least": 0,
		}
		switch processor {
		case "printer": // the poison one was parked between its two attempts
			want["processed_events_total"], want["acked_events_total"], want["parked_events_total"], want["retried_events_total"] = 49, 50, 1, 1
		case "invoicer":
			want["processed_events_total"], want["acked_events_total"], want["retried_events_total"] = 47, 50, 1
		case "auditor":
			want["processed_events_total"], want["acked_events_total"], want["quarantines_total"] = 44, 44, 1
		case "mailer":
			want["processed_events_total"], want["acked_events_total"] = 0, 0
		case "billing":
			want = map[string]int64{} // its worker is dead
		}
		for name, value := range want {
			series := fmt.Sprintf(`runnel_%s{processor="%s",stream="orders"}`, name, processor)
			if got, there := sums[series]; !there || int64(got) != value {
				t.Errorf("%s is %v (%v), want %d", series, got, there, value)
			}
		}
		for n := range of {
			series := fmt.Sprintf(`runnel_partition_lag_events{partition="%d",processor="%s",stream="orders"}`, n, processor)
			if got, there := sums[series]; there != (processor != "billing") || int64(got) != of[n].lag && there {
				t.Errorf("%s is %v (%v), want %d", series, got, there, of[n].lag)
			}
		}
	}
}

// sum adds up what the live workers tell of a processor.
func (s *scene) sum(metric, processor string) (n float64) {
	for _, url := range s.urls {
		n += s.scrape(url)[fmt.Sprintf(`runnel_%s{processor="%s",stream="orders"}`, metric, processor)]
	}
	return n
}

// scrape returns the series of a worker by name and labels, without the app's.
func (s *scene) scrape(url string) map[string]float64 {
	s.t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	series := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		at := strings.LastIndexByte(line, ' ')
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil && line[0] != '#' {
			series[strings.Replace(line[:at], `app="shop",`, "", 1)] = value
		}
	}
	return series
}

func status(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func (s *scene) decode(text []byte, into any) {
	s.t.Helper()
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
