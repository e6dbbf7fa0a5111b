package cli

import (
	"cmp"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// serveProfile serves what `go tool pprof` and `go tool trace` ask for: profile and trace of so many
// ?seconds, and by its name, in the form ?debug, each profile of the runtime. Package net/http/pprof would
// add 0.2 MB to each app, and serve the command line, where a password may stand.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	seconds, _ := strconv.ParseFloat(r.FormValue("seconds"), 64)
	debug, _ := strconv.Atoi(r.FormValue("debug"))
	record := func(start func(io.Writer) error, stop func(), otherwise float64) {
		if err := start(w); err != nil { // nothing is written: another one runs
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer stop()
		monotime.Sleep(r.Context(), time.Duration(cmp.Or(seconds, otherwise)*float64(time.Second)))
	}
	switch name := r.PathValue("profile"); name {
	case "profile":
		record(pprof.StartCPUProfile, pprof.StopCPUProfile, 30)
	case "trace":
		record(trace.Start, trace.Stop, 1)
	default:
		p := pprof.Lookup(name)
		if p == nil {
			http.Error(w, "no profile "+strconv.Quote(name), http.StatusNotFound)
			return
		}
		if name == "heap" {
			runtime.GC() // a heap profile is as of the last one
		}
		_ = p.WriteTo(w, debug)
	}
}
