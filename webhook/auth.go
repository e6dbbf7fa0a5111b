package webhook

import (
	"cmp"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/guesses"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A caller is who has made a request.
type caller struct {
	client string // "root" for root
	root   bool
	roles  []Role
	from   string // its address
}

func (c *caller) has(role Role) bool { return slices.Contains(c.roles, role) }

// Who may make a request.
var (
	anyToken         = func(*caller) bool { return true }
	onlyRoot         = func(c *caller) bool { return c.root }
	publishers       = func(c *caller) bool { return c.has(RolePublish) }
	publishersOrRoot = func(c *caller) bool { return c.root || c.has(RolePublish) }
	subscribers      = func(c *caller) bool { return c.root || c.has(RoleSubscribe) }
)

// own is what a client does to its own subscription, and root to the one that the path or the query names.
func own(do func(w http.ResponseWriter, r *http.Request, c *caller, name string) error) func(http.ResponseWriter, *http.Request, *caller) error {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		named := cmp.Or(r.PathValue("name"), r.URL.Query().Get("subscriber"))
		switch {
		case named == "" && c.root:
			return invalidf("root has no subscription: name one with ?subscriber=")
		case named != "" && !c.root && named != c.client:
			return refusal(http.StatusForbidden, "this is the subscription of another client")
		}
		name := cmp.Or(named, c.client)
		if err := checkClient(name); err != nil {
			return err
		}
		return do(w, r, c, name)
	}
}

// secure returns an error unless nobody on the way has read the request.
func (a *api) secure(r *http.Request) error {
	remote := addressIn(r.RemoteAddr)
	ok := r.TLS != nil || a.opts.AllowHTTP || remote.IsLoopback()
	if says := r.Header.Values("X-Forwarded-Proto"); r.TLS == nil && !a.opts.AllowHTTP && len(says) > 0 && a.trusts(remote) {
		ok = len(says) == 1 && strings.EqualFold(says[0], "https")
	}
	if !ok {
		return refusal(http.StatusForbidden, "this request came without TLS, and so did its token: use https. Behind a proxy that has TLS name it in TrustProxies, and let it set X-Forwarded-Proto; AllowHTTP lets everybody in")
	}
	if a.cross.Check(r) != nil {
		return refusal(http.StatusForbidden, "the request came from a page of another origin")
	}
	return nil
}

// admit returns who has made a request.
func (a *api) admit(r *http.Request) (*caller, error) {
	if err := a.secure(r); err != nil {
		return nil, err
	}
	at := a.origin(r)
	c, from := &caller{from: at.String()}, guesses.Address(netip.AddrPortFrom(at, 0).String())
	tooMany := refusal(http.StatusTooManyRequests, "too many wrong tokens from this address: wait a minute")
	if a.tries.Blocked(from) {
		return nil, tooMany
	}
	token := tokenOf(r)
	if token == "" {
		return nil, refusal(http.StatusUnauthorized, "a token is needed: as the user name of HTTP Basic, or as Authorization: Bearer")
	}
	if root := a.opts.RootToken; root != "" && sameSecret(token, root) {
		c.client, c.root = "root", true
	} else if found, err := (tokens{a.Bus}).find(r.Context(), token); err != nil {
		return nil, err
	} else if found != nil {
		c.client, c.roles = found.Client, found.Roles
	}
	switch right := c.client != ""; {
	case !a.tries.Try(from, right):
		return nil, tooMany
	case !right:
		return nil, refusal(http.StatusUnauthorized, "this token is not known")
	}
	return c, nil
}

// sameSecret compares in a time that tells nothing of what is right.
func sameSecret(given, right string) bool {
	return subtle.ConstantTimeCompare([]byte(iwebhook.HashOf(given)), []byte(iwebhook.HashOf(right))) == 1
}

// tokenOf returns the token of a request, "" for none.
func tokenOf(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// origin returns the address that a request came from: the last one that no trusted proxy has.
func (a *api) origin(r *http.Request) netip.Addr {
	at := addressIn(r.RemoteAddr)
	through := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(through) {
		before := addressIn(strings.TrimSpace(text))
		if !before.IsValid() || !a.trusts(at) {
			break
		}
		at = before
	}
	return at
}

func (a *api) trusts(at netip.Addr) bool {
	return slices.ContainsFunc(a.opts.TrustProxies, func(p netip.Prefix) bool { return p.Contains(at) })
}

// addressIn returns an address, with a port or without one, an invalid one if it is none of IP.
func addressIn(text string) netip.Addr {
	at, err := netip.ParseAddr(text)
	if err != nil {
		with, _ := netip.ParseAddrPort(text)
		at = with.Addr()
	}
	return at.Unmap().WithZone("")
}
