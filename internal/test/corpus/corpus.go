// Package corpus gives fuzz targets the inputs that earlier runs found worth keeping.
// Those of FuzzX are one file, testdata/corpus/FuzzX.txt, where Go's own corpus would be a
// directory with a file for each: an input is its arguments, a line each, as Go writes
// them in its corpus, and a blank line ends it.
package corpus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Add adds the inputs kept for f to it. It ends the test if there are none, or if
// one cannot be read.
func Add(f *testing.F) {
	f.Helper()
	name := filepath.Join("testdata", "corpus", f.Name()+".txt")
	file, err := os.Open(name)
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	inputs, err := Read(file)
	if err != nil {
		f.Fatalf("%s: %v", name, err)
	}
	for _, input := range inputs {
		f.Add(input...)
	}
}

// Read reads inputs: strings, byte slices and ints.
func Read(r io.Reader) ([][]any, error) {
	var inputs [][]any
	var input []any
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == "" {
			inputs, input = append(inputs, input), nil
			continue
		}
		argument, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		input = append(input, argument)
	}
	if len(input) > 0 {
		return nil, errors.New("no blank line ends the last input")
	}
	if err := lines.Err(); err != nil || len(inputs) == 0 {
		return nil, errors.Join(errors.New("no inputs"), err)
	}
	return inputs, nil
}

func parse(line string) (any, error) {
	kind, literal, ok := strings.Cut(strings.TrimSuffix(line, ")"), "(")
	if !ok {
		return nil, fmt.Errorf("%s: want a type and a literal in brackets", line)
	}
	if kind == "int" {
		return strconv.Atoi(literal)
	}
	text, err := strconv.Unquote(literal)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", line, err)
	case kind == "string":
		return text, nil
	case kind == "[]byte":
		return []byte(text), nil
	}
	return nil, fmt.Errorf("%s: no argument is of type %s", line, kind)
}
