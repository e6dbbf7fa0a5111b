package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// public knows the addresses that IANA has given out for unicast, less those of special purposes: private ones, loopback, link-local, which are
// metadata of clouds, documentation, multicast, and those that have an IPv4 address in them, such as 6to4, NAT64 and Teredo.
var public = ssrf.New()

// An addressError says that an address is not public.
type addressError struct{ addr netip.Addr }

func (e *addressError) Error() string { return fmt.Sprintf("address %s is not public", e.addr) }

// checkAddress returns an *addressError unless an address is public or in allow. An IPv4 address within IPv6 is judged
// as IPv4.
func checkAddress(addr netip.Addr, allow []netip.Prefix) error {
	addr = addr.Unmap().WithZone("")
	if slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(addr) }) || public.SafeAddr(addr) == nil {
		return nil
	}
	return &addressError{addr}
}

// guardDial returns a ControlContext of a net.Dialer that refuses what checkAddress refuses. The dialer calls it with
// the very address it is about to connect to, so nothing is gained by a name that resolves differently each time.
func guardDial(allow []netip.Prefix) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return errors.New("not an address of TCP")
		}
		return checkAddress(to.Addr(), allow)
	}
}

// maxCallback is how long a callback may be, in bytes.
const maxCallback = 1024

// checkCallback returns what is wrong with the URL of a callback. It looks nothing up: only guardDial knows to which
// address a name leads. Errors do not repeat the URL, but for an address that is not public.
func checkCallback(text string, allowHTTP bool, allow []netip.Prefix) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxCallback:
		return fmt.Errorf("callback has more than %d bytes", maxCallback)
	case err != nil:
		return errors.New("callback is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("callback does not begin with https://")
	case u.Scheme == "http" && !allowHTTP:
		return errors.New("callback begins with http://, which is not allowed")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return errors.New("callback has a user, a query or a fragment")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("callback has a port that is not from 1 to 65535")
		}
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return checkAddress(addr, allow)
	}
	// No top-level domain begins with a digit, but some resolvers read 2130706433, 0x7f.1 and 127.1 as 127.0.0.1.
	labels := strings.Split(strings.TrimSuffix(u.Hostname(), "."), ".")
	if last := labels[len(labels)-1]; last == "" || last[0] >= '0' && last[0] <= '9' {
		return errors.New("callback has no host that is a name or an address")
	}
	return nil
}
