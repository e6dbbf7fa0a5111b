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

// Who may make a request: roles of tokens, and root, who has one of its own.
const (
	roleRoot    Role = "root"
	anyRole          = "any"
	subscribers      = RoleSubscribe + " " + roleRoot // of their own subscription, root of any
)

func (c *call) is(role Role) bool { return slices.Contains(c.roles, role) }

// may returns nil if a client has one of the roles, and sets what its call is about.
func (c *call) may(who string) error {
	if who != anyRole && !slices.ContainsFunc(strings.Fields(who), c.is) {
		return refusef(http.StatusForbidden, "this token has no role that may do this")
	}
	if who != subscribers {
		return nil
	}
	named := cmp.Or(c.on, c.URL.Query().Get("subscriber"))
	switch {
	case named == "" && c.is(roleRoot):
		return invalidf("root has no subscription: name one with ?subscriber=")
	case named != "" && named != c.client && !c.is(roleRoot):
		return refusef(http.StatusForbidden, "this is the subscription of another client")
	}
	c.on = cmp.Or(named, c.client)
	return checkClient(c.on)
}

// admit finds out who makes a call, and lets those in who may.
func (a *api) admit(c *call, who string) error {
	at, token := a.origin(c.Request), tokenOf(c.Request)
	from := guesses.Address(netip.AddrPortFrom(at, 0).String())
	tooMany := refusef(http.StatusTooManyRequests, "too many wrong tokens from this address: wait a minute")
	switch {
	case !a.private(c.Request):
		return refusef(http.StatusForbidden, "this request came without TLS, and so did its token: use https. A proxy that has TLS must be in TrustProxies, and set X-Forwarded-Proto")
	case a.cross.Check(c.Request) != nil:
		return refusef(http.StatusForbidden, "the request came from a page of another origin")
	case a.tries.Blocked(from):
		return tooMany
	case token == "":
		return refusef(http.StatusUnauthorized, "a token is needed: as the user name of HTTP Basic, or as Authorization: Bearer")
	}
	c.from = at.String()
	if root := a.opts.RootToken; root != "" && sameSecret(token, root) {
		c.client, c.roles = "root", []Role{roleRoot}
	} else {
		hash := iwebhook.HashOf(token)
		found, err := a.known.look(hash, func() (Token, error) { return iwebhook.Tokens{Bus: a.calls}.Find(c.Context(), hash) })
		if err != nil {
			return err
		}
		c.client, c.roles = found.Client, found.Roles
	}
	switch right := c.client != ""; {
	case !a.tries.Try(from, right):
		return tooMany
	case !right:
		return refusef(http.StatusUnauthorized, "this token is not known")
	}
	return c.may(who)
}

// private reports whether others on the way cannot have read a request.
func (a *api) private(r *http.Request) bool {
	from, says := addressIn(r.RemoteAddr), r.Header.Values("X-Forwarded-Proto")
	switch {
	case r.TLS != nil || a.opts.AllowHTTP:
		return true
	case len(says) > 0 && a.trusts(from):
		return len(says) == 1 && strings.EqualFold(says[0], "https")
	}
	return from.IsLoopback()
}

// sameSecret compares in a time that tells nothing of what is right.
func sameSecret(given, right string) bool {
	return subtle.ConstantTimeCompare([]byte(iwebhook.HashOf(given)), []byte(iwebhook.HashOf(right))) == 1
}

// tokenOf returns the token of a request, "" for none.
func tokenOf(r *http.Request) string {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	user, _, _ := r.BasicAuth()
	return user
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
