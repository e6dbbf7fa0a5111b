package cli

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// An escaping is stdout or stderr. It writes control and format characters, and bytes that are
// not text, as escapes such as \u001b, so that keys, records and names cannot control the terminal
// that shows them. Lines and tabs pass. It is safe for concurrent use.
type escaping struct {
	w    io.Writer
	json bool // escapes must stay JSON

	mu   sync.Mutex
	half []byte // the beginning of a character
	err  error  // of the first write that failed
}

// failed returns the error of the first write to stdout or stderr that failed.
func failed(w io.Writer) error {
	s, ok := w.(*escaping)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func newEscaping(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return &escaping{w: w}
}

// Write implements io.Writer.
func (s *escaping) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.write(p)
	s.err = cmp.Or(s.err, err)
	return n, err
}

func (s *escaping) write(p []byte) (int, error) {
	if len(s.half) == 0 && isPlain(p) {
		return s.w.Write(p)
	}
	text := append(s.half, p...)
	s.half = nil
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= n
			}
			break
		}
	}
	s.half = append(s.half, text[whole:]...)
	var b strings.Builder
	escape(&b, string(text[:whole]), s.json, "\n\t")
	if _, err := io.WriteString(s.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// isPlain reports whether p is ASCII without control characters other than line feeds and tabs.
func isPlain(p []byte) bool {
	for _, c := range p {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// raw is the writer below an escaping, for output that controls the terminal, and for child processes.
func raw(w io.Writer) io.Writer {
	if s, ok := w.(*escaping); ok {
		return s.w
	}
	return w
}

// escape writes text with escapes, except for the characters in pass.
func escape(b *strings.Builder, text string, json bool, pass string) {
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1 && json:
			b.WriteString(`\ufffd`)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(b, `\x%02x`, text[0])
		case !steers(r) || strings.ContainsRune(pass, r):
			b.WriteString(text[:n])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
		text = text[n:]
	}
}

// steers reports whether a terminal may do more with r than show it: C0, C1 and DEL, marks of
// direction and others of category Cf, and line separators.
func steers(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// shown escapes a text so that it stays on its line and in its column.
func shown(text string) string {
	if isPlain([]byte(text)) && !strings.ContainsAny(text, "\n\t") {
		return text
	}
	var b strings.Builder
	escape(&b, text, false, "")
	return b.String()
}

// A theirs is a text from outside the program among the arguments of printf.
type theirs string

// Format implements fmt.Formatter. %q escapes by itself.
func (t theirs) Format(f fmt.State, verb rune) {
	text := string(t)
	if verb != 'q' {
		text = shown(text)
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), text)
}

// printf is fmt.Fprintf that keeps each argument within its line and its column.
func printf(w io.Writer, format string, args ...any) (int, error) {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case nil:
		case error:
			arg = theirs(v.Error())
		case fmt.Formatter:
		case fmt.Stringer:
			arg = theirs(v.String())
		default:
			if s := reflect.ValueOf(arg); s.Kind() == reflect.String {
				arg = theirs(s.String())
			}
		}
		safe[i] = arg
	}
	return fmt.Fprintf(w, format, safe...)
}
