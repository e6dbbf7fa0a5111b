package python

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
)

var allPartitioners = []*runnel.Partitioner{runnel.XXHash, Partitioner, IntPartitioner, MD5Partitioner, IntMD5Partitioner}

// The docs show testdata/partitioner.txt, and other languages may test against it.
func TestPartitionerVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/partitioner.txt")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, `"`) {
			continue
		}
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		key, _ := strconv.Unquote(quoted)
		columns := strings.Fields(line[len(quoted):])
		if len(columns) != len(allPartitioners) {
			t.Fatalf("%s: %d columns", line, len(columns))
		}
		for i, p := range allPartitioners {
			if got := strconv.Itoa(p.Func(key, 16)); columns[i] != "-" && got != columns[i] {
				t.Errorf("%s: %s of 16 is %s, want %s", p.Name, quoted, got, columns[i])
			}
			tested++
		}
	}
	if tested < 50 {
		t.Errorf("only %d vectors", tested)
	}
}

func TestPythonKeys(t *testing.T) {
	if got := Partitioner.Func("abc", 16); got != 1 {
		t.Errorf("'abc' is on %d of 16, want 1", got)
	}
	if got := IntPartitioner.Func("1", 16); got != 4 {
		t.Errorf("1 is on %d of 16, want 4", got)
	}
	if got := MD5Partitioner.Func("abc", 16); got != 11 {
		t.Errorf("by md5 'abc' is on %d of 16, want 11", got)
	}
	if got := IntMD5Partitioner.Func("1", 16); got != 11 {
		t.Errorf("by md5 1 is on %d of 16, want 11", got)
	}
	// md5(repr('customer-42')) is larger than any number of 64 bits: all of it counts.
	if got := MD5Partitioner.Func("customer-42", 37); got != 11 {
		t.Errorf("by md5 'customer-42' is on %d of 37, want 11", got)
	}
}

func TestPartitionerNames(t *testing.T) {
	for want, p := range map[string]*runnel.Partitioner{
		"xxh64": runnel.XXHash, "python-repr-xxh64": Partitioner, "python-int-xxh64": IntPartitioner,
		"python-repr-md5": MD5Partitioner, "python-int-md5": IntMD5Partitioner,
	} {
		if p.Name != want {
			t.Errorf("name = %q, want %q", p.Name, want)
		}
	}
}

func TestPartitionersStayInRange(t *testing.T) {
	for _, p := range allPartitioners {
		for _, partitions := range []int{1, 2, 7, 16, 1024} {
			used := make([]int, partitions)
			for i := range 20 * partitions {
				used[p.Func(fmt.Sprint("key-", i), partitions)]++ // panics if out of range
			}
			for n, keys := range used {
				if keys == 0 {
					t.Errorf("%s: no key of %d on partition %d of %d", p.Name, 20*partitions, n, partitions)
				}
			}
		}
	}
}

func TestPartitionersDoNotAllocate(t *testing.T) {
	for _, p := range allPartitioners {
		if n := testing.AllocsPerRun(100, func() { p.Func("customer-42", 16) }); n != 0 {
			t.Errorf("%s: %v allocations", p.Name, n)
		}
	}
}

// As Python 3.11 prints them.
func TestRepr(t *testing.T) {
	tests := []struct{ key, want string }{
		{"", "''"},
		{"abc", "'abc'"},
		{"a b", "'a b'"},
		{"it's", "\"it's\""},
		{"'", "\"'\""},
		{"\"", "'\"'"},
		{"''", "\"''\""},
		{"say \"hi\"", "'say \"hi\"'"},
		{"it's \"x\"", "'it\\'s \"x\"'"},
		{"\\", "'\\\\'"},
		{"a\\'b", "\"a\\\\'b\""},
		{"\n\r\t", "'\\n\\r\\t'"},
		{"\x00\x01\x1f\x7f", "'\\x00\\x01\\x1f\\x7f'"},
		{"\x1b[0m", "'\\x1b[0m'"},
		{"\u0080\u009f\u00a0\u00ad\u00ff", "'\\x80\\x9f\\xa0\\xad\u00ff'"},
		{"\u00e9\u0301\u65e5\u672c", "'\u00e9\u0301\u65e5\u672c'"},
		{"\u0378", "'\\u0378'"},
		{"\u0600\u061c", "'\\u0600\\u061c'"},
		{"\u2003\u3000", "'\\u2003\\u3000'"},
		{"\u200b\u200e\u2028\u2029", "'\\u200b\\u200e\\u2028\\u2029'"},
		{"\ufeff\uffff\ue000", "'\\ufeff\\uffff\\ue000'"},
		{"\ufffd", "'\ufffd'"},
		{"\U0001f600\U0001f9ff", "'\U0001f600\U0001f9ff'"},
		{"\U000e0001\U0003ffff\U0010ffff", "'\\U000e0001\\U0003ffff\\U0010ffff'"},
		{"\xff", "'\\udcff'"},
		{"a\xed\xa0\x80b", "'a\\udced\\udca0\\udc80b'"},
		{"\xc3", "'\\udcc3'"},
		{"{}%s", "'{}%s'"},
	}
	for _, tt := range tests {
		if got := string(appendRepr(nil, tt.key)); got != tt.want {
			t.Errorf("%+q: got %s, want %s", tt.key, got, tt.want)
		}
	}
}

func BenchmarkPartitioner(b *testing.B) {
	for _, p := range []*runnel.Partitioner{runnel.XXHash, Partitioner} {
		b.Run(p.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Func("customer-000042", 16)
			}
		})
	}
}
