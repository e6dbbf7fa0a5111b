package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// output is stdout in the format of --output.
type output struct {
	w    io.Writer
	json bool
	wide bool // text with all columns
}

func newOutput(c *call, w io.Writer) output {
	format := c.String(flagOutput)
	if strings.EqualFold(format, "json") {
		return output{w: &escaping{w: raw(w), json: true}, json: true}
	}
	return output{w: w, wide: strings.EqualFold(format, "wide")}
}

// write writes v as one line of JSON, or calls text.
func (o output) write(v any, text func(w io.Writer) error) error {
	if !o.json {
		err := text(o.w)
		return cmp.Or(failed(o.w), err)
	}
	enc := json.NewEncoder(o.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes v as one line of JSON, or the table that fill fills.
func (o output) table(v any, fill func(t table)) error {
	return o.write(v, func(w io.Writer) error {
		t := newTable(w)
		fill(t)
		return t.Flush()
	})
}

// line writes v as JSON, or one line of text, for a command that changed something. An error
// includes that text.
func (o output) line(v any, format string, args ...any) error {
	return unwritten(fmt.Sprintf(format, args...), o.write(v, func(w io.Writer) error {
		_, err := printf(w, format+"\n", args...)
		return err
	}))
}

// unwritten is the error of a command whose output could not be written after it did something,
// which a script must not do again.
func unwritten(did string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, but its output could not be written: %w", did, err)
}

// isTerminal reports whether a stream is connected to a terminal.
func isTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = raw(w)
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a device, too
	return err != nil || !os.SameFile(info, null)
}
