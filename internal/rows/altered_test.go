package rows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

// A row that was changed in place is found until it is set or undone, also if the codec makes other bytes each time.
func TestAltered(t *testing.T) {
	p, n := &Partition{}, 0
	rows := p.Add(Config{
		Name: "t", Budget: &Budget{Most: 1 << 20},
		Source: &redis{rows: map[string]store.Row{"a": {Value: "0 a", There: true}, "b": {Value: "0 b", There: true}}},
		Encode: func(v any) (string, error) {
			n++
			return fmt.Sprint(n, " ", v.(*[]string)), nil
		},
		Decode: func(data string) (any, error) {
			_, text, _ := strings.Cut(data, " ")
			list := strings.Fields(strings.Trim(text, "&[]"))
			return &list, nil
		},
	})
	check := func(want ...string) {
		t.Helper()
		var got []string
		p.Altered(func(table, key string) { got = append(got, table+"/"+key) })
		if !slices.Equal(got, want) {
			t.Errorf("altered %q, want %q", got, want)
		}
	}
	p.Begin("1-0")
	mark := p.Mark()
	value, _ := rows.Get("a")
	rows.Get("b")
	check()
	list := value.(*[]string)
	(*list)[0] = "x"
	check("t/a")
	rows.Set("a", list, 0)
	check()
	p.Undo(mark)
	rows.Get("a")
	check()
}
