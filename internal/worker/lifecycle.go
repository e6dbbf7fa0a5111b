package worker

import (
	"sync"
	"sync/atomic"
)

// A lifecycle is the stage of the end of an ownership. Its methods may be called concurrently.
type lifecycle struct {
	ending    chan struct{}
	endingIt  sync.Once
	finished  chan struct{} // the consumer has returned
	over      atomic.Bool   // lost
	gone      chan struct{} // closed when it is lost
	endIt     sync.Once     // see releaser.end
	retaken   atomic.Bool   // see releaser.retake
	freeing   atomic.Bool   // the lock is being released
	groupGone atomic.Bool   // our consumer group was destroyed
	behind    atomic.Bool   // see releaser.behind
	ended     chan struct{} // closed at the end of releaser.end
}

func (l *lifecycle) init() {
	l.ending, l.finished, l.gone, l.ended = make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
}

// beginEnd begins the end; further calls do nothing.
func (l *lifecycle) beginEnd() { l.endingIt.Do(func() { close(l.ending) }) }

func (l *lifecycle) isEnding() bool { return isClosed(l.ending) }

// hasEnded reports whether releaser.end is done.
func (l *lifecycle) hasEnded() bool { return isClosed(l.ended) }

// isLost reports whether the partition may have another owner.
func (l *lifecycle) isLost() bool { return l.over.Load() }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
