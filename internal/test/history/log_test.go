package history

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const writerVariable = "HISTORY_TEST_WRITER"

// TestMain lets the test binary be the process that is killed while it writes.
func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

func writeUntilKilled(path string) {
	l, err := Open(path, "victim")
	for n := int64(1); err == nil; n++ {
		if err = l.Sent("orders", 3, fmt.Sprintf("%d-0", n), "k", n); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestKilledWriterLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "victim.log")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerVariable+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for lines := bufio.NewScanner(out); lines.Scan(); acknowledged++ {
		if acknowledged == 500 {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	records, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if acknowledged < 500 || len(records) < acknowledged {
		t.Errorf("%d records in the file, %d were written", len(records), acknowledged)
	}
	last := records[len(records)-1]
	if last.Worker != "victim" || last.Partition != 3 || last.Seqs[0] != int64(len(records)) || last.At < records[0].At {
		t.Errorf("last record: %v", last)
	}
}

func TestFileGivesBackWhatMemoryHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.log")
	file, err := Open(path, "w")
	if err != nil {
		t.Fatal(err)
	}
	memory := Memory()
	for _, l := range []*Log{file, memory.As("w")} {
		writeAll(t, l)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := memory.Records()
	for i := range got {
		got[i].At, want[i].At = 0, 0
	}
	if len(got) != 10 || !reflect.DeepEqual(got, want) {
		t.Errorf("file:   %v\nmemory: %v", got, want)
	}
	if report := Check(got, Options{Retries: true}); !report.OK || report.Completed != 2 {
		t.Error(report)
	}
}

func writeAll(t *testing.T, l *Log) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(l.Sent("orders", 1, "1-0", "a", 1))
	check(l.Sent("orders", 1, "2-0", "a", 2))
	check(l.Unknown("orders", "a", 3))
	check(l.Refused("orders", "a", 4))
	check(l.Fault("w", Stop))
	check(l.Note("half time"))
	r := Record{
		Executor: "x", Stream: "orders", Processor: "printer", Partition: 1, Epoch: 5,
		IDs: []string{"1-0", "2-0"}, Keys: []string{"a", "a"}, Seqs: []int64{1, 2},
	}
	for _, end := range []func(*Iteration) error{(*Iteration).Fail, func(i *Iteration) error { return i.Complete() }} {
		i, err := l.Begin(r)
		check(err)
		check(end(i))
	}
}

func TestWriteRefusesWhatCannotBeJudged(t *testing.T) {
	cases := []struct {
		name   string
		record Record
		want   string
	}{
		{"kind", Record{Kind: "sings"}, `unknown kind "sings"`},
		{"fault", Record{Kind: Fault, Fault: "tickle"}, `unknown fault "tickle"`},
		{"no ids", Record{Kind: Begin}, "0 ids"},
		{"no keys", Record{Kind: Sent, IDs: []string{"1-0"}}, "0 keys"},
		{"entry ID", Record{Kind: End, IDs: []string{"1-x"}}, `entry ID "1-x"`},
		{"entry ID without a dash", Record{Kind: End, IDs: []string{"17"}}, `entry ID "17"`},
		{"unknown without key", Record{Kind: Unknown}, "0 keys"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			l := Memory()
			if err := l.Write(tc.record); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if n := len(l.Records()); n != 0 {
				t.Errorf("%d records were written", n)
			}
		})
	}
}

func TestConcurrentWritersKeepLinesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.log")
	l, err := Open(path, "w")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for n := range 200 {
				_ = l.Note(fmt.Sprintf("%d %d %s", w, n, strings.Repeat("x", 500)))
			}
		})
	}
	writers.Wait()
	records, err := Read(path)
	if err != nil || len(records) != 1600 {
		t.Fatalf("%d records, %v, want 1600", len(records), err)
	}
	last := map[string]int64{}
	for i, r := range records {
		writer, _, _ := strings.Cut(r.Text, " ")
		if r.At < last[writer] {
			t.Fatalf("record %d is earlier than the one before it of the same writer", i)
		}
		last[writer] = r.At
	}
}

func TestMemoryFollowsFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Memory()
		_ = l.As("a").Note("first")
		time.Sleep(time.Hour)
		_ = l.As("b").Note("second")
		r := l.Records()
		if d := time.Duration(r[1].At - r[0].At); d != time.Hour || r[0].Worker != "a" || r[1].Worker != "b" {
			t.Errorf("an hour apart, of a and b; got %v, %v", d, r)
		}
	})
}

func TestReadJudgesLines(t *testing.T) {
	const good = `{"kind":"note","at":1,"partition":0,"text":"x"}`
	cases := []struct {
		name, data string
		records    int
		err        string
	}{
		{"empty", "", 0, ""},
		{"whole", good + "\n" + good + "\n", 2, ""},
		{"last line cut short", good + "\n" + good[:20], 1, ""},
		{"last line without its end", good + "\n" + good, 2, ""},
		{"garbage", good + "\nrubbish\n" + good + "\n", 0, ":2: "},
		{"garbage at the end", good + "\nrubbish\n", 0, ":2: "},
		{"two on a line", good + good + "\n", 0, ":1: more than one"},
		{"empty line", "\n" + good + "\n", 0, ":1: "},
		{"unknown field", `{"kind":"note","colour":"red"}` + "\n", 0, "colour"},
		{"unknown kind", `{"kind":"song"}` + "\n", 0, `unknown kind "song"`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "w.log")
			if err := os.WriteFile(path, []byte(tc.data), 0o600); err != nil {
				t.Fatal(err)
			}
			records, err := Read(path)
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
			if len(records) != tc.records {
				t.Errorf("%d records, want %d", len(records), tc.records)
			}
		})
	}
}
