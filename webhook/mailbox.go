package webhook

import "sync"

// A mailbox is what other goroutines have for an owner's. Its methods may be called concurrently, and never block.
type mailbox struct {
	again chan struct{} // there is something

	mu     sync.Mutex
	posted []func()
}

// post lets the owner's goroutine call a function.
func (m *mailbox) post(do func()) {
	m.mu.Lock()
	m.posted = append(m.posted, do)
	m.mu.Unlock()
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// take returns what has come.
func (m *mailbox) take() (posted []func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	posted, m.posted = m.posted, nil
	return posted
}
