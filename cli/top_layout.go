package cli

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

const (
	// widest bounds the width of a column other than the last.
	widest = 32
	// content is the least width of the last column.
	content = 24
)

// layout chooses the columns that fit, and their widths. The last one, which has the longest texts,
// may be narrower than its texts, and takes the width that is left.
func layout(heads []head, rows []topRow, width int) (chosen, widths []int) {
	last := len(heads) - 1
	widths = make([]int, len(heads))
	byRank := make([]int, len(heads))
	for i, h := range heads {
		byRank[i], widths[i] = i, ansi.StringWidth(h.title)
		for r := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(rows[r].cells[i]))
		}
		widths[i] = min(widths[i], widest)
		if h.title == trendTitle {
			widths[i] = trendLooks
		}
	}
	widths[last] = min(widths[last], content)
	slices.SortFunc(byRank, func(a, b int) int { return heads[a].rank - heads[b].rank })
	used := 0
	for _, i := range byRank {
		if need := widths[i] + min(len(chosen), 1)*2; used+need <= width || len(chosen) == 0 {
			chosen, used = append(chosen, i), used+need
		}
	}
	slices.Sort(chosen)
	if chosen[len(chosen)-1] == last {
		widths[last] += max(width-used, 0)
	}
	return chosen, widths
}

// layLine is a line of the cells of the chosen columns.
func layLine(heads []head, chosen, widths []int, width int, cell func(int) string) string {
	var b strings.Builder
	for n, i := range chosen {
		if n > 0 {
			b.WriteString("  ")
		}
		text := ansi.Truncate(printable(cell(i)), widths[i], "…")
		space := strings.Repeat(" ", max(widths[i]-ansi.StringWidth(text), 0))
		if heads[i].left {
			b.WriteString(text + space)
		} else {
			b.WriteString(space + text)
		}
	}
	return ansi.Truncate(b.String(), width, "…")
}

// fit is a text cut to one line of at most width cells.
func fit(text string, width int) string { return ansi.Truncate(printable(text), width, "…") }

// wrapped is a text broken into lines between words.
func wrapped(text string, width int) (lines []string) {
	for _, word := range strings.Fields(printable(text)) {
		if n := len(lines) - 1; n >= 0 && ansi.StringWidth(lines[n])+1+ansi.StringWidth(word) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, ansi.Truncate(word, width, "…"))
		}
	}
	return lines
}

func cut(lines []string, width, height int) []string {
	lines = slices.Clone(lines[:min(len(lines), max(height, 0))])
	for i := range lines {
		lines[i] = fit(lines[i], width)
	}
	return lines
}

// printable replaces characters of names and errors that could control the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
