package main

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// Measures of the picture, in its pixels.
const (
	width, paneWidth = 720, 350
	top, rowHeight   = 44, 18
	rows             = 13
	paneHeight       = rows*rowHeight + 10
	commandTop       = top + paneHeight + 12
	height           = commandTop + 64
)

// pause is how long the end stands before the recording begins anew.
const pause = 4 * time.Second

const style = `text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #24292f; white-space: pre }
.s { font-family: system-ui, sans-serif } .b { font-weight: 600 } .x { fill: #6e7781 } .r { fill: #b3403a; font-weight: 600 }
.p { fill: #f6f8fa; stroke: #8c959f } .c { fill: #f6f8fa }
.k0 { fill: #2f6f9f } .k1 { fill: #a8572c } .k2 { fill: #4a7d3a } .k3 { fill: #7a4d8f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .x { fill: #9da7b1 } .r { fill: #ff8f88 } .p { fill: #161b22; stroke: #57606a } .c { fill: #161b22 }
.bg { fill: #0d1117 } .k0 { fill: #79b8e8 } .k1 { fill: #f0a878 } .k2 { fill: #8fce7c } .k3 { fill: #d0a8e8 } }
@media (prefers-reduced-motion: reduce) { g, rect, text { animation: none !important } }
`

// draw returns the recording as SVG, animated by CSS. A viewer without animation shows its end.
func draw(r run, found string) []byte {
	var out, css bytes.Buffer
	total := ends + pause
	percent := func(at time.Duration) string { return fmt.Sprintf("%.2f%%", 100*float64(at)/float64(total)) }
	for i, p := range r.panes {
		if i == 0 {
			p.lines = append(slices.Clone(p.lines), r.ended)
		}
		drawPane(&out, i, p)
		// A cover uncovers the lines that fill the pane; those behind them scroll it.
		fmt.Fprintf(&css, ".c%d { animation: c%d %ds step-end infinite } @keyframes c%d { 0%% { transform: none }", i, i, int(total.Seconds()), i)
		for n, l := range p.lines[:min(rows, len(p.lines))] {
			fmt.Fprintf(&css, " %s { transform: translateY(%dpx) }", percent(l.at), (n+1)*rowHeight)
		}
		fmt.Fprintf(&css, " }\n.s%d { animation: s%d %ds step-end infinite } @keyframes s%d { 0%% { transform: none }", i, i, int(total.Seconds()), i)
		for n, l := range p.lines[min(rows, len(p.lines)):] {
			fmt.Fprintf(&css, " %s { transform: translateY(%dpx) }", percent(l.at), -(n+1)*rowHeight)
		}
		css.WriteString(" }\n")
	}
	for name, at := range map[string]time.Duration{"k": r.killed.at, "e": ends} {
		fmt.Fprintf(&css, ".%s { animation: %s %ds step-end infinite } @keyframes %s { 0%% { opacity: 0 } %s { opacity: 1 } }\n", name, name, int(total.Seconds()), name, percent(at))
	}
	fmt.Fprintf(&out, `<rect x="5" y="%d" width="%d" height="28" rx="6" class="p"/><text x="14" y="%d">$</text><text x="30" y="%d" class="k r">%s</text>`+"\n",
		commandTop, width-10, commandTop+19, commandTop+19, html.EscapeString(r.killed.text))
	fmt.Fprintf(&out, `<text x="5" y="%d" class="s e">%s</text>`+"\n", commandTop+52, html.EscapeString(found))

	label := "Two workers, one of which is ended with kill -9. The other one goes on with its customers' orders. " + found
	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n<style>\n%s%s</style>\n", width, height, html.EscapeString(label), style, css.String())
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="#fff" class="bg"/>`+"\n", width, height)
	svg.Write(out.Bytes())
	svg.WriteString("</svg>\n")
	return svg.Bytes()
}

func drawPane(out *bytes.Buffer, i int, p pane) {
	x := 5 + i*(width-10-paneWidth)
	fmt.Fprintf(out, `<text x="%d" y="20" class="s b">worker %s</text><text x="%d" y="20" class="s x">process %d</text>`+"\n", x, p.worker, x+72, p.pid)
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" class="p"/>`+"\n", x, top-14, paneWidth, paneHeight+14)
	fmt.Fprintf(out, `<svg x="%d" y="%d" width="%d" height="%d" viewBox="0 0 %d %d">`, x+1, top-6, paneWidth-2, rows*rowHeight, paneWidth-2, rows*rowHeight)
	fmt.Fprintf(out, `<g class="s%d" style="transform:translateY(%dpx)">`+"\n", i, -max(0, len(p.lines)-rows)*rowHeight)
	for n, l := range p.lines {
		class := ""
		if k := slices.IndexFunc(customers, func(c string) bool { return strings.HasPrefix(l.text, c+" ") }); k >= 0 {
			class = fmt.Sprintf(` class="k%d"`, k)
		} else if strings.HasPrefix(l.text, "signal:") {
			class = ` class="r"`
		}
		fmt.Fprintf(out, `<text x="8" y="%d"><tspan class="x">%5.2f s  </tspan><tspan%s>%s</tspan></text>`+"\n", (n+1)*rowHeight-5, l.at.Seconds(), class, html.EscapeString(l.text))
	}
	fmt.Fprintf(out, `</g><rect class="c c%d" width="%d" height="%d" style="transform:translateY(%dpx)"/></svg>`+"\n", i, paneWidth-2, rows*rowHeight, min(rows, len(p.lines))*rowHeight)
}
