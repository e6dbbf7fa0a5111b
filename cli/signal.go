package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"time"
)

// sameSignal is how close two signals are that count as one: timeout(1), for example,
// signals a process and then its group.
const sameSignal = 20 * time.Millisecond

// secondSignal is how long after the first Ctrl-C a command explains a second one.
const secondSignal = 500 * time.Millisecond

// interrupts ends the command at the first signal and the process at the second. While a
// child runs, it forwards the signals to the child instead. It never returns.
func (p *program) interrupts(cancel context.CancelFunc) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, stopSignals()...)
	var first, last time.Time
	for {
		sig := <-signals
		again := time.Since(last) < sameSignal
		last = time.Now()
		if again || p.child.signal(sig) {
			continue
		}
		if !first.IsZero() {
			p.finally("%s: second signal: exiting at once\n", p.name)
			os.Exit(130)
		}
		first = last
		cancel()
		if sig == os.Interrupt {
			time.AfterFunc(secondSignal, func() { p.finally("%s: ending; Ctrl-C again ends it at once\n", p.name) })
		}
	}
}

// A child is the process that runs in place of this one, while there is one.
type child struct{ process atomic.Pointer[os.Process] }

// signal passes a signal on and reports whether there is a child.
func (ch *child) signal(sig os.Signal) bool {
	p := ch.process.Load()
	if p != nil {
		forward(p, sig)
	}
	return p != nil
}
