// Package guesses bounds how many wrong tokens an address may try.
package guesses

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// Wrong is how many wrong tokens an address may try in a Window.
	Wrong = 10
	// Window is for how long wrong tokens count.
	Window = time.Minute

	remembered = 1024 // addresses
)

// A Guard counts the wrong tokens of addresses. It is safe for concurrent use.
type Guard struct {
	mu      sync.Mutex
	guesses map[string]guess // by address
}

// A guess counts the wrong tokens from an address since its window began.
type guess struct {
	began time.Time
	wrong int
}

// New returns a guard that knows no address.
func New() *Guard { return &Guard{guesses: map[string]guess{}} }

// Blocked reports whether an address has tried too many wrong tokens. It saves the work of looking at another one.
func (g *Guard) Blocked(from string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.mayTry(from, time.Now())
}

// Try counts a token that an address has tried, and reports whether it may: otherwise the token is refused, even if it is right.
// Of concurrent guesses no more count than of those one after another.
func (g *Guard) Try(from string, right bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !g.mayTry(from, now) {
		return false
	}
	if !right {
		was := g.guesses[from]
		if now.Sub(was.began) >= Window {
			was = guess{began: now}
		}
		was.wrong++
		g.guesses[from] = was
	}
	return true
}

func (g *Guard) mayTry(from string, now time.Time) bool {
	if was, is := g.guesses[from]; is {
		return was.wrong < Wrong || now.Sub(was.began) >= Window
	}
	if len(g.guesses) < remembered {
		return true
	}
	for address, was := range g.guesses {
		if now.Sub(was.began) >= Window {
			delete(g.guesses, address)
		}
	}
	return len(g.guesses) < remembered
}

// Address returns the host of an address, such as http.Request.RemoteAddr; for IPv6 its network, as one machine may have many
// addresses in it.
func Address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Unmap().Is4() {
		return host
	}
	network, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}
