package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// golden compares the JSON output of commands with testdata. RUNNEL_GOLDEN=write rewrites the
// files.
func (s *scene) golden(t *testing.T) {
	for _, m := range s.members() {
		s.names[m.Executor] = fmt.Sprintf("<executor of %s>", m.Worker)
	}
	for name, args := range map[string][]string{
		"status":           {"status"},
		"status-processor": {"status", "orders/auditor"},
		"top":              {"top", "--every", "200ms"},
		"workers-ls":       {"workers", "ls"},
		"check":            {"check", "--max-lag", "20"},
		"stream-ls":        {"stream", "ls"},
		"stream-info":      {"stream", "info", "orders"},
		"stream-verify":    {"stream", "verify", "orders"},
		"processor-ls":     {"processor", "ls"},
		"processor-info":   {"processor", "info", "orders/invoicer"},
		"rules-ls":         {"rules", "ls"},
		"dead-ls":          {"dead", "ls", "orders/printer"},
		"parked-ls":        {"parked", "ls", "orders/invoicer"},
		"delayed-ls":       {"delayed", "ls", "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			dec := json.NewDecoder(bytes.NewReader(s.run(nil, args...)))
			for dec.More() { // a line each
				var v any
				if err := dec.Decode(&v); err != nil {
					t.Fatal(err)
				}
				if err := enc.Encode(s.named(v, "", -1)); err != nil {
					t.Fatal(err)
				}
			}
			file := s.file(t, name, got.Bytes())
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("%s differs from %s:\n%s", strings.Join(args, " "), file, firstDifference(got.String(), string(want)))
			}
		})
	}
}

// file returns the file of an output. By position there is one only of what differs from that by group.
func (s *scene) file(t *testing.T, name string, got []byte) string {
	t.Helper()
	file, special := filepath.Join("testdata", name+".json"), filepath.Join("testdata", s.reads, name+".json")
	if os.Getenv("RUNNEL_GOLDEN") == "write" {
		common, err := os.ReadFile(file)
		if s.reads != "group" && err == nil {
			_ = os.Remove(special)
			if bytes.Equal(common, got) {
				return file
			}
			file = special
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(special); err == nil {
		return special
	}
	return file
}

// changing are the fields that always differ from run to run.
var changing = []string{"lock_left", "heartbeat_left", "age", "epoch", "tenure", "generation", "in", "oldest_age"}

var (
	moment    = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`)
	entryID   = regexp.MustCompile(`\b\d{13}-\d+\b`)
	delayedID = regexp.MustCompile(`\b\d{16}\b`) // the number of a delayed event
	group     = regexp.MustCompile(`\b[0-9A-Za-z]{16}\b`)
)

// named returns a JSON value with varying parts replaced by names. partition is the one that the
// value is about, -1 for none.
func (s *scene) named(v any, field string, partition int) any {
	switch v := v.(type) {
	case map[string]any:
		if n, ok := v["partition"].(float64); ok {
			partition = int(n)
		}
		out := map[string]any{}
		for name, value := range v {
			out[name] = s.named(value, name, partition)
		}
		return out
	case []any:
		for i := range v {
			v[i] = s.named(v[i], field, partition)
		}
		return v
	case float64:
		if slices.Contains(changing, field) && v > 0 {
			return "<" + field + ">"
		}
		return v
	case string:
		return s.namedText(v, field, partition)
	}
	return v
}

func (s *scene) namedText(v, field string, partition int) string {
	switch {
	case slices.Contains(changing, field) && v != "":
		return "<" + field + ">"
	case field == "redis":
		return "<redis>"
	case field == "layout" && v == s.keys.Layout:
		return "<layout>"
	}
	for n := range 4 {
		v = strings.ReplaceAll(v, s.keys.Partition("orders", n), fmt.Sprintf("<key of partition %d>", n))
	}
	v = delayedID.ReplaceAllString(moment.ReplaceAllString(v, "<time>"), "<number>")
	v = entryID.ReplaceAllStringFunc(v, func(id string) string {
		if name := s.names[fmt.Sprintf("%d %s", partition, id)]; name != "" {
			return name
		}
		return "<id>"
	})
	return group.ReplaceAllStringFunc(v, func(id string) string {
		if name := s.names[id]; name != "" {
			return name
		}
		return id
	})
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d: got %s, want %s", i+1, g[i], slices.Concat(w, make([]string, len(g)))[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}
