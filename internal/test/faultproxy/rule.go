package faultproxy

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"
)

type kind int

const (
	none kind = iota
	closeBefore
	closeAfter
	reset
	swallow
	hold
	holdReply
	delay
	answer
)

// Action is what a rule does to a request or its reply.
type Action struct {
	kind  kind
	until <-chan struct{}
	delay time.Duration
	reply string
}

// The actions without parameters.
var (
	// CloseBefore closes the client's connection and does not forward the request.
	CloseBefore = Action{kind: closeBefore}
	// CloseAfter forwards the request, waits for its reply, and closes the client's connection instead of
	// delivering it.
	CloseAfter = Action{kind: closeAfter}
	// Reset forwards the request and resets the client's connection at once (RST). The server's side stays open
	// until the reply has come, so a blocked read goes on being blocked and may still take entries.
	Reset = Action{kind: reset}
	// Swallow forwards the request and never delivers its reply, nor anything after it; the connection stays open.
	Swallow = Action{kind: swallow}
	// Hold keeps the request, and what the client sends after it, from the server until Release, even when the client
	// has closed its connection meanwhile: the orphan is carried out then.
	Hold = Action{kind: hold}
)

// HoldReply forwards the request and delivers its reply, and those behind it, when until is closed or at Release.
// until may be nil.
func HoldReply(until <-chan struct{}) Action { return Action{kind: holdReply, until: until} }

// Delay forwards the request, and what the client sends after it, later by d.
func Delay(d time.Duration) Action { return Action{kind: delay, delay: d} }

// Answer sends the client this raw RESP reply, such as "-LOADING wait\r\n", and does not carry the request out.
func Answer(reply string) Action { return Action{kind: answer, reply: reply} }

// Every, instead of a number, makes a rule hold for every request of its command.
const Every = 0

// Rule is an action waiting for its request. Its methods may be called concurrently once Do has been called.
type Rule struct {
	proxy    *Proxy
	command  string
	n        int
	contains [][]byte
	action   Action

	seen int // guarded by proxy.mu

	releaseOnce, firedOnce sync.Once
	release, fired         chan struct{}
}

// On makes a rule for the n-th request of a command, upper case, counted over all connections from the call of Do;
// the next one is 1. Of several rules that meet the same request the one made first acts.
func (p *Proxy) On(command string, n int) *Rule {
	return &Rule{proxy: p, command: command, n: n, release: make(chan struct{}), fired: make(chan struct{})}
}

// Containing narrows a rule to requests with all these texts in their first 16 KiB: a key, the hash of a script. Others
// are not counted.
func (r *Rule) Containing(texts ...string) *Rule {
	for _, text := range texts {
		r.contains = append(r.contains, []byte(text))
	}
	return r
}

// wants reports whether the rule is about such requests.
func (r *Rule) wants(req *request) bool {
	return r.command == req.name &&
		!slices.ContainsFunc(r.contains, func(text []byte) bool { return !bytes.Contains(req.head, text) })
}

// Do sets the action and puts the rule in force.
func (r *Rule) Do(a Action) *Rule {
	r.action = a
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.proxy.rules = append(r.proxy.rules, r)
	return r
}

// Release ends the rule: it lets go what the rule holds, and no later request meets it.
func (r *Rule) Release() { r.releaseOnce.Do(func() { close(r.release) }) }

func (r *Rule) released() bool {
	select {
	case <-r.release:
		return true
	default:
		return false
	}
}

// Hits returns how many requests the rule is about have arrived since Do.
func (r *Rule) Hits() int {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	return r.seen
}

// Release releases all rules.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		r.Release()
	}
}

// Fired is closed when the action has taken effect for the first time: the connection is closed, the request is held,
// the reply has come and is held back, swallowed or replaced.
func (r *Rule) Fired() <-chan struct{} { return r.fired }

func (r *Rule) fire() { r.firedOnce.Do(func() { close(r.fired) }) }

// Wait returns when the rule has fired. It ends the test when that takes longer than a minute.
func (r *Rule) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-r.fired:
	case <-time.After(time.Minute):
		t.Fatalf("fault proxy: request %d of %s did not come", r.n, r.command)
	}
}

// match counts a request and returns the rule that acts on it, or nil.
func (p *Proxy) match(req *request) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits[req.name]++
	var first *Rule
	for _, r := range p.rules {
		if !r.wants(req) {
			continue
		}
		r.seen++
		if first == nil && !r.released() && (r.n == Every || r.seen == r.n) {
			first = r
		}
	}
	return first
}
