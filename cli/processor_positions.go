package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-go/runnel/admin"
)

// positions are what `processor reset --export` writes and --import reads.
type positions struct {
	Version   int            `json:"v"`
	App       string         `json:"app"`
	Stream    string         `json:"stream"`
	Processor string         `json:"processor"`
	Positions map[int]string `json:"positions"` // by partition: all entries up to there are done
}

// export writes the positions to a new file, or to stdout for "-".
func (p *positions) export(path string, stdout io.Writer) error {
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if path == "-" {
		_, err = stdout.Write(text)
		return err
	}
	return writeNewFile(path, text)
}

// writeNewFile writes a file that does not exist yet.
func writeNewFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// imported reads an exported file for a stream of so many partitions. The file may be of another
// processor of the stream, but not of another stream.
func imported(path, app, stream string, partitions int) (map[int]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all positions
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if all.Version != 1 || len(all.Positions) == 0 {
		return nil, fmt.Errorf("%s: it holds no positions, or those of another version", path)
	}
	if all.App != app || all.Stream != stream {
		return nil, fmt.Errorf("%s: it holds positions in stream %s of app %s", path, all.Stream, all.App)
	}
	to := map[int]string{}
	for n, id := range all.Positions {
		if n < 0 || n >= partitions {
			return nil, fmt.Errorf("%s: there is no partition %d of %d", path, n, partitions)
		}
		if to[n], err = admin.ParseID(id); err != nil {
			return nil, fmt.Errorf("%s: partition %d: %w", path, n, err)
		}
	}
	return to, nil
}

var errNumbers = errors.New("say partitions as in 0-3,7")

// numbersOf reads a list such as "0-3,7" of partitions below n; an empty one means all.
func numbersOf(text string, n int) (out []int, err error) {
	if text == "" {
		text = fmt.Sprintf("0-%d", n-1)
	}
	for _, part := range list(text) {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || last < first {
			return nil, fmt.Errorf("%q: %w", part, errNumbers)
		}
		if last >= n {
			return nil, fmt.Errorf("there is no partition %d of %d", last, n)
		}
		for i := first; i <= last; i++ {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil, errNumbers
	}
	return out, nil
}
