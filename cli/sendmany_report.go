package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A report tells what goes wrong in sendmany, line by line, and below that, on a
// terminal, how far it is.
type report struct {
	w     io.Writer
	named bool // several files: each message names its own
	far   *progress
	read  int64 // bytes of the files that are dealt with
	all   int64 // bytes; 0: not known
}

func newReport(w io.Writer, named bool) *report {
	return &report{w: w, named: named, far: newProgress(w)}
}

// sizeOf is how many bytes files have, 0 where that is not known.
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

// refused tells of a line that is no record.
func (r *report) refused(l line, err error) {
	r.clear()
	printf(r.w, "%s: %s\n", r.place(l), oneLine(err))
}

// failed tells of lines that the server did not take.
func (r *report) failed(f failures) {
	for _, one := range f.groups {
		r.clear()
		word := "lines "
		if one.count == 1 {
			word = "line "
		}
		printf(r.w, "%s: %s\n", r.places(one.file, word+one.numbers()), one.text)
	}
}

// progress tells how far the records are; their share is that of the bytes,
// less what stands between them.
func (r *report) progress(c counts) {
	share := 0.0
	if r.all > 0 {
		share = min(float64(r.read)/float64(r.all), 0.99)
	}
	r.far.at(fmt.Sprintf("sent %d, failed %d", c.Sent, c.Failed), c.Sent+c.Failed, share)
}

// clear makes room for a message.
func (r *report) clear() { r.far.clear() }

// failures are the lines of a batch that failed, those with the same message
// together: when a server is full, or gone, that is all of them.
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
