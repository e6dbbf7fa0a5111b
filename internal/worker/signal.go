package worker

// A signal wakes the goroutine that receives from it. Signals that come before it receives
// count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// set wakes the receiver. It never blocks, and may be called concurrently.
func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}
