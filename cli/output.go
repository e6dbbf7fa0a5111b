package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

// output is stdout, as text or as JSON.
type output struct {
	w    io.Writer
	json bool
	wide bool // text with all columns
}

func newOutput(c *cli.Context, w io.Writer) output {
	format := c.String(flagOutput)
	if strings.EqualFold(format, "json") {
		return output{w: &escaping{w: raw(w), json: true}, json: true}
	}
	return output{w: w, wide: strings.EqualFold(format, "wide")}
}

// write writes v as one line of JSON, or what text writes.
func (o output) write(v any, text func(w io.Writer) error) error {
	if !o.json {
		return text(o.w)
	}
	enc := json.NewEncoder(o.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// line writes v as JSON, or one line of text.
func (o output) line(v any, format string, args ...any) error {
	return o.write(v, func(w io.Writer) error {
		_, err := printf(w, format+"\n", args...)
		return err
	})
}

// isTerminal reports whether somebody watches what is written to a stream, or types
// what is read from it.
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
