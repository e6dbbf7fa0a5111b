package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A table is text in columns, and lines between the rows.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row writes cells, each of which stays on its line and in its column.
func (t table) row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, shown(fmt.Sprint(cell)))
	}
	fmt.Fprintln(t)
}

// linef writes a line. A tab in the format ends a column, none in an argument does.
func (t table) linef(format string, args ...any) { printf(t, format+"\n", args...) }
