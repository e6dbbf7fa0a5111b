package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A report writes the failures of sendmany, line by line, and below them its progress on a terminal.
type report struct {
	w     io.Writer
	named bool // several files: each message names its own
	far   *progress
	read  int64 // bytes of the files that are done
	all   int64 // bytes; 0: unknown
}

func newReport(w io.Writer, named bool) *report {
	return &report{w: w, named: named, far: newProgress(w)}
}

// sizeOf is the size of all files in bytes, 0 if unknown.
func sizeOf(files []string) (all int64) {
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || mayBlock(file) {
			return 0
		}
		all += info.Size()
	}
	return all
}

// place names a line.
func (r *report) place(l line) string { return r.places(l.file, "line "+strconv.Itoa(l.number)) }

func (r *report) places(file, lines string) string {
	if r.named && file != "" {
		return file + ": " + lines
	}
	return lines
}

// refused reports a line that is no record.
func (r *report) refused(l line, err error) {
	r.far.clear()
	printf(r.w, "%s: %s\n", r.place(l), oneLine(err))
}

// failed reports lines that the server did not take.
func (r *report) failed(f failures) {
	for _, one := range f.groups {
		r.far.clear()
		word := "lines "
		if one.count == 1 {
			word = "line "
		}
		printf(r.w, "%s: %s\n", r.places(one.file, word+one.numbers()), one.text)
	}
}

// progress shows the progress by the bytes of the lines read, which are a little less than the whole.
func (r *report) progress(c counts) {
	share := 0.0
	if r.all > 0 {
		share = min(float64(r.read)/float64(r.all), 0.99)
	}
	r.far.at(fmt.Sprintf("sent %d, failed %d", c.Sent, c.Failed), c.Sent+c.Failed, share)
}

// failures are the lines of a batch that failed, grouped by message: with a server that is full or
// gone, all lines have the same.
type failures struct{ groups []*failure }

type failure struct {
	file, text string
	count      int
	spans      [][2]int // first and last line number
}

func (f *failures) add(l line, text string) {
	for _, g := range f.groups {
		if g.file != l.file || g.text != text {
			continue
		}
		g.count++
		if last := &g.spans[len(g.spans)-1]; last[1]+1 == l.number {
			last[1]++
		} else {
			g.spans = append(g.spans, [2]int{l.number, l.number})
		}
		return
	}
	f.groups = append(f.groups, &failure{l.file, text, 1, [][2]int{{l.number, l.number}}})
}

func (g *failure) numbers() string {
	var out []string
	for _, s := range g.spans {
		if s[0] == s[1] {
			out = append(out, strconv.Itoa(s[0]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", s[0], s[1]))
		}
	}
	return strings.Join(out, ", ")
}
