package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"
)

// guard returns what refuses to connect to other addresses than public or allowed ones. Public are those that IANA has given out for unicast, less
// those of special purposes: private ones, loopback, link-local, which are metadata of clouds, documentation, multicast, and those that have an
// IPv4 address in them, such as 6to4, NAT64 and Teredo. A dialer asks with the very address that it is about to connect to, so nothing is gained by a
// name that resolves differently each time.
func guard(allow []netip.Prefix) *ssrf.Guardian {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(allow...), ssrf.WithAllowedV6Prefixes(allow...))
}

// maxCallback is how long a callback may be, in bytes.
const maxCallback = 1024

// checkCallback returns what is wrong with the URL of a callback. It looks nothing up: only the guard of the dialer knows to which
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
	if port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16); err != nil || port == 0 || strings.HasSuffix(u.Host, ":") {
		return errors.New("callback has a port that is not from 1 to 65535")
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return guard(allow).SafeAddr(addr.Unmap().WithZone(""))
	}
	// No top-level domain begins with a digit, but some resolvers read 2130706433, 0x7f.1 and 127.1 as 127.0.0.1.
	labels := strings.Split(strings.TrimSuffix(u.Hostname(), "."), ".")
	if last := labels[len(labels)-1]; last == "" || last[0] >= '0' && last[0] <= '9' {
		return errors.New("callback has no host that is a name or an address")
	}
	return nil
}
