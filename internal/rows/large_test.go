package rows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/store"
)

// Many rows are asked for together only if they are small: a reply of all would hold the server.
func TestLargeRowsAreAskedForInPieces(t *testing.T) {
	for _, tt := range []struct {
		size int
		want string
	}{
		{10, "[4 96] [100]"},
		{100 << 10, "[4 10 10 10 10 10 10 10 10 10 6] [10 10 10 10 10 10 10 10 10 10]"},
		{3 << 20, strings.Repeat("1 ", 300)},
	} {
		from := &redis{rows: map[string]store.Row{}}
		var keys []string
		for i := range 200 {
			keys = append(keys, fmt.Sprint("k", i))
			from.rows[keys[i]] = store.Row{Value: strings.Repeat("x", tt.size), There: true}
		}
		rows := table(&Partition{}, from, 1<<40)
		if err := rows.Ask(keys[:100]); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(from.of)
		from.of = nil
		if err := rows.Ask(keys[100:]); err != nil {
			t.Fatal(err)
		}
		got += " " + fmt.Sprint(from.of)
		if tt.size > 1<<20 {
			tt.want = "[4 " + tt.want[:2*96-1] + "] [" + tt.want[:2*100-1] + "]"
		}
		if got != tt.want {
			t.Errorf("rows of %d bytes: requests for %s, want %s", tt.size, got, tt.want)
		}
	}
}
