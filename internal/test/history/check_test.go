package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Event n of these histories has the entry ID n-0, the key a or b, and the seq n.
func event(kind Kind, n int) Record {
	return Record{
		Kind: kind, IDs: []string{fmt.Sprintf("%d-0", n)}, Keys: []string{key(n)}, Seqs: []int64{int64(n)},
	}
}

func key(n int) string { return []string{"a", "b"}[n%2] }

func sent(n int) Record { return event(Sent, n) }

func unknown(n int) Record {
	return Record{Kind: Unknown, Keys: []string{key(n)}, Seqs: []int64{int64(n)}}
}

func refused(n int) Record {
	return Record{Kind: Refused, Keys: []string{key(n)}, Seqs: []int64{int64(n)}}
}

func iterate(kind Kind, worker string, epoch int64, events []int) Record {
	r := Record{Kind: kind, Worker: worker, Executor: "x" + worker, Processor: "printer", Epoch: epoch}
	for _, n := range events {
		e := event(kind, n)
		r.IDs, r.Keys, r.Seqs = append(r.IDs, e.IDs...), append(r.Keys, e.Keys...), append(r.Seqs, e.Seqs...)
	}
	return r
}

func begin(worker string, epoch int64, events ...int) Record {
	return iterate(Begin, worker, epoch, events)
}

func end(worker string, epoch int64, events ...int) Record {
	return iterate(End, worker, epoch, events)
}

func failed(worker string, epoch int64, events ...int) Record {
	r := end(worker, epoch, events...)
	r.Failed = true
	return r
}

func fault(worker, kind string) Record { return Record{Kind: Fault, Worker: worker, Fault: kind} }

// pause lets a minute pass: longer than any aftermath.
func pause() Record { return Record{Kind: Note, Text: "a minute"} }

// under gives an event an entry ID other than its seq's.
func under(id string, r Record) Record {
	r.IDs = []string{id}
	return r
}

func at(processor string, records ...Record) []Record {
	for i := range records {
		records[i].Processor = processor
	}
	return records
}

// history numbers records in time, a millisecond apart.
func history(parts ...any) []Record {
	var all []Record
	now := time.Hour
	for _, p := range parts {
		list, ok := p.([]Record)
		if !ok {
			list = []Record{p.(Record)}
		}
		for _, r := range list {
			now += time.Millisecond
			if r.Kind == Note {
				now += time.Minute
			}
			r.At = int64(now)
			all = append(all, r)
		}
	}
	return all
}

func run(worker string, epoch int64, events ...int) []Record {
	return []Record{begin(worker, epoch, events...), end(worker, epoch, events...)}
}

// violations are histories that break a promise.
var violations = []struct {
	name    string
	class   Class
	opts    Options
	records []Record
}{
	{"never begun", ClassLoss, Options{}, history(sent(1), sent(2), run("w", 1, 1))},
	{"never ended", ClassLoss, Options{}, history(sent(1), begin("w", 1, 1))},
	{"failed for good", ClassLoss, Options{}, history(sent(1), begin("w", 1, 1), failed("w", 1, 1))},
	{"missed by one processor", ClassLoss, Options{}, history(sent(1), sent(2), run("w", 1, 1), run("w", 1, 2),
		at("other", run("w", 1, 1)...))},
	{"processor that never ran", ClassLoss, Options{Processors: []string{"printer", "other"}},
		history(sent(1), run("w", 1, 1))},
	{"nobody ran", ClassLoss, Options{}, history(sent(1))},
	{"found appended, not completed", ClassLoss, Options{}, history(unknown(1), event(Appended, 1), run("w", 1, 2))},
	{"part of a batch completed", ClassLoss, Options{}, history(sent(1), sent(2), begin("w", 1, 1, 2), end("w", 1, 2))},
	{"sent long after the flush", ClassLoss, Options{}, history(sent(1), run("w", 1, 1), fault("", Flush), pause(), sent(2))},
	{"skipped, then found", ClassOrder, Options{}, history(sent(1), sent(2), run("w", 1, 2), run("x", 2, 1))},
	{"numbers, not text", ClassOrder, Options{}, history(run("w", 1, 10), run("x", 2, 9))},
	{"beyond doubles", ClassOrder, Options{}, history(
		[]Record{under("1-18446744073709551615", begin("w", 1, 1)), under("1-18446744073709551615", end("w", 1, 1))},
		[]Record{under("1-18446744073709551614", begin("x", 2, 2)), under("1-18446744073709551614", end("x", 2, 2))})},
	{"batch out of order", ClassOrder, Options{}, history(begin("w", 1, 2, 1), end("w", 1, 2, 1))},
	{"key out of order", ClassFIFO, Options{}, history(
		under("1-0", sent(3)), under("2-0", sent(1)),
		under("1-0", begin("w", 1, 3)), under("1-0", end("w", 1, 3)),
		under("2-0", begin("w", 1, 1)), under("2-0", end("w", 1, 1)))},
	{"old owner goes on", ClassOwner, Options{}, history(fault("w", Stop), run("w", 1, 1), run("x", 2, 2), run("w", 1, 3))},
	{"old owner begins, never ends", ClassOwner, Options{}, history(run("w", 1, 1), run("x", 2, 2), begin("w", 1, 3))},
	{"old owner goes on, twice, continued", ClassOwner, Options{}, history(run("w", 1, 1), fault("w", Stop), run("x", 2, 2), run("x", 2, 3),
		fault("w", Cont), run("w", 1, 2), run("w", 1, 3))},
	{"old owner goes on long after it was continued", ClassOwner, Options{}, history(run("w", 1, 1), fault("w", Stop), run("x", 2, 2),
		fault("w", Cont), pause(), run("w", 1, 2))},
	{"two owners of an epoch", ClassOwner, Options{}, history(run("w", 1, 1), run("x", 1, 2))},
	{"overlap within an epoch", ClassOwner, Options{}, history(begin("w", 1, 1), begin("w", 1, 2))},
	{"another event while one is open", ClassOwner, Options{Retries: true}, history(begin("w", 1, 1), begin("w", 1, 2))},
	{"back within an epoch", ClassOwner, Options{}, history(begin("w", 1, 1), failed("w", 1, 1), run("w", 1, 1))},
	{"back to a completed event", ClassOwner, Options{Retries: true}, history(run("w", 1, 1), run("w", 1, 2), begin("w", 1, 1))},
	{"clean handover too early", ClassOwner, Options{}, history(begin("w", 1, 1), run("x", 2, 2), end("w", 1, 1))},
	{"repeat after a clean handover", ClassRepeat, Options{}, history(sent(1), run("w", 1, 1), run("x", 2, 1))},
	{"repeat after term", ClassRepeat, Options{}, history(run("w", 1, 1), fault("w", Term), run("x", 2, 1))},
	{"repeat, fault of another worker", ClassRepeat, Options{}, history(run("w", 1, 1), fault("y", Kill), run("x", 2, 1))},
	{"repeat, fault long before", ClassRepeat, Options{}, history(fault("w", Cut), pause(), run("w", 1, 1), run("x", 2, 1))},
	{"repeat, stopped and continued long before", ClassRepeat, Options{},
		history(fault("w", Stop), fault("w", Cont), pause(), run("w", 1, 1), run("x", 2, 1))},
	{"repeat, fault after it", ClassRepeat, Options{}, history(run("w", 1, 1), run("x", 2, 1), fault("w", Kill))},
	{"repeat, lost long after it", ClassRepeat, Options{}, history(run("w", 1, 1), run("x", 2, 1), pause(), fault("w", Lost))},
	{"repeat within an epoch", ClassRepeat, Options{Retries: true}, history(fault("w", Kill), run("w", 1, 1), run("w", 1, 1))},
	{"sent twice", ClassResend, Options{}, history(sent(1), under("2-0", sent(1)), run("w", 1, 1),
		under("2-0", begin("w", 1, 1)), under("2-0", end("w", 1, 1)))},
	{"refused, but there", ClassRefused, Options{}, history(refused(1), run("w", 1, 1))},
	{"end without begin", ClassRecord, Options{}, history(end("w", 1, 1))},
	{"end of another event", ClassRecord, Options{}, history(begin("w", 1, 1), end("w", 1, 2))},
	{"end by another worker", ClassRecord, Options{}, history(begin("w", 1, 1), end("x", 1, 1))},
	{"entry with two contents", ClassRecord, Options{}, history(sent(1), under("1-0", begin("w", 1, 2)))},
	{"unknown fault", ClassRecord, Options{}, history(fault("w", "tickle"))},
}

func TestViolations(t *testing.T) {
	for _, tc := range violations {
		t.Run(tc.name, func(t *testing.T) {
			report := Check(tc.records, tc.opts)
			found := false
			for _, v := range report.Violations {
				found = found || v.Class == tc.class
			}
			if report.OK || !found {
				t.Errorf("want a violation of %s:\n%s", tc.class, report)
			}
			if text := report.String(); !strings.Contains(text, string(tc.class)+": ") {
				t.Errorf("the summary does not explain it:\n%s", text)
			}
		})
	}
}

func TestAllowed(t *testing.T) {
	cases := []struct {
		name    string
		opts    Options
		records []Record
		want    Report // the counts of interest
	}{
		{"one worker", Options{}, history(sent(1), sent(2), run("w", 1, 1), run("w", 1, 2)), Report{Completed: 2}},
		{"batches, one partly completed", Options{}, history(sent(1), sent(2), begin("w", 1, 1, 2), end("w", 1, 1),
			fault("w", Kill), run("x", 2, 2)), Report{Completed: 2, Unclean: 1}},
		{"clean handover", Options{}, history(sent(1), sent(2), run("w", 1, 1), run("x", 2, 2)), Report{Completed: 2, Clean: 1}},
		{"epochs without iterations", Options{}, history(run("w", 1, 1), run("x", 7, 2)), Report{Completed: 2, Clean: 1}},
		{"partitions are independent", Options{}, history(run("w", 5, 2), func() []Record {
			list := run("x", 1, 1)
			list[0].Partition, list[1].Partition = 1, 1
			return list
		}()), Report{Completed: 2}},
		{"killed in an iteration", Options{}, history(sent(1), begin("w", 1, 1), fault("w", Kill), run("x", 2, 1)),
			Report{Completed: 1, Unclean: 1, Unfinished: 1}},
		{"killed before the ack", Options{}, history(sent(1), run("w", 1, 1), fault("w", Kill), run("x", 2, 1)),
			Report{Completed: 2, Repeats: 1, Unclean: 1}},
		{"taken over a minute after the kill", Options{}, history(run("w", 1, 1), fault("w", Kill), pause(), run("x", 2, 1)),
			Report{Completed: 2, Repeats: 1, Unclean: 1}},
		{"cut just before", Options{}, history(fault("w", Cut), run("w", 1, 1), run("x", 2, 1)),
			Report{Completed: 2, Repeats: 1, Unclean: 1}},
		{"everybody cut", Options{}, history(run("w", 1, 1), fault("", Cut), run("x", 2, 1)),
			Report{Completed: 2, Repeats: 1, Unclean: 1}},
		{"stopped as it began, which is written late", Options{}, history(run("w", 1, 1), fault("w", Stop), run("x", 2, 2),
			fault("w", Cont), run("w", 1, 2)), Report{Completed: 3, Repeats: 1, Unclean: 1, Leftovers: 1}},
		{"lost, and noticed late", Options{}, history(run("w", 1, 1), run("x", 2, 1), fault("w", Lost)),
			Report{Completed: 2, Repeats: 1, Unclean: 1}},
		{"stopped in an iteration, which ends late", Options{}, history(sent(1), sent(2), begin("w", 1, 1), fault("w", Stop), pause(),
			run("x", 2, 1), run("x", 2, 2), fault("w", Cont), end("w", 1, 1)), Report{Completed: 3, Repeats: 1, Unclean: 1}},
		{"loop restarted", Options{Retries: true}, history(sent(1), begin("w", 1, 1), failed("w", 1, 1), begin("w", 1, 1),
			run("w", 1, 1)), Report{Completed: 1, Unfinished: 1}},
		{"sent again after unknown", Options{}, history(unknown(1), sent(1), under("2-0", sent(1)), run("w", 1, 1),
			under("2-0", begin("w", 1, 1)), under("2-0", end("w", 1, 1))), Report{Completed: 2, Resends: 1}},
		{"refused, then sent", Options{}, history(refused(1), sent(1), run("w", 1, 1)), Report{Completed: 1}},
		{"unknown and not there", Options{}, history(unknown(1), sent(2), run("w", 1, 2)), Report{Completed: 1}},
		{"an unknown seq comes late", Options{}, history(unknown(1), under("4-0", sent(3)), under("5-0", sent(1)),
			under("4-0", begin("w", 1, 3)), under("4-0", end("w", 1, 3)),
			under("5-0", begin("w", 1, 1)), under("5-0", end("w", 1, 1))), Report{Completed: 2}},
		{"flushed away", Options{}, history(sent(1), sent(7), run("w", 1, 1), fault("", Flush), sent(8), run("w", 2, 8)),
			Report{Completed: 2, Excused: 1, Unclean: 1}},
		{"lower IDs after a flush", Options{}, history(sent(7), run("w", 1, 7), fault("", Flush),
			under("1-0", sent(9)), under("1-0", begin("w", 2, 9)), under("1-0", end("w", 2, 9))), Report{Completed: 2, Unclean: 1}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := Check(tc.records, tc.opts)
			if !got.OK {
				t.Fatal(got)
			}
			tc.want.OK, tc.want.Events, tc.want.Epochs, tc.want.Faults = true, got.Events, got.Epochs, got.Faults
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", &tc.want) {
				t.Errorf("got  %s\nwant %s", got, &tc.want)
			}
		})
	}
}

func TestNothingIsAllowed(t *testing.T) {
	if got := Check(nil, Options{}); !got.OK || got.Events != 0 {
		t.Error(got)
	}
}

func TestReportPrintsAtMostTwenty(t *testing.T) {
	var records []Record
	for n := range 30 {
		records = append(records, sent(n+1))
	}
	got := Check(records, Options{}).String()
	if !strings.Contains(got, "30 violations") || !strings.Contains(got, "and 10 more") {
		t.Errorf("got %s", got)
	}
}

// Many violations of one class leave room for those of another.
func TestReportExplainsEachClass(t *testing.T) {
	r := Report{Violations: slices.Repeat([]Violation{{Class: ClassRepeat}}, 30)}
	r.Violations = append(r.Violations, Violation{Class: ClassOwner})
	got := r.String()
	if n := strings.Count(got, "\n  repeat:"); n != 10 || !strings.Contains(got, "\n  owner:") || !strings.Contains(got, "and 20 more") {
		t.Errorf("got %d repeats: %s", n, got)
	}
}
