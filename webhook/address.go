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
)

// publicV6 is all that IANA has given out for unicast. It leaves out, among others, ::/96, NAT64 (64:ff9b::/96 and
// 64:ff9b:1::/48), discard-only (100::/64), SRv6 (5f00::/16), unique local, link-local, site-local and multicast.
var publicV6 = netip.MustParsePrefix("2000::/3")

// special are the ranges that do not lead to one public machine, of IPv4, and of IPv6 within publicV6.
var special = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared by carriers
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local: metadata of clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays of 6to4
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
	"2001::/23",       // protocol assignments: Teredo, benchmarks, ORCHID
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4, which has an IPv4 address in it
	"3fff::/20",       // documentation
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// An addressError says that an address is not public.
type addressError struct{ addr netip.Addr }

func (e *addressError) Error() string { return fmt.Sprintf("address %s is not public", e.addr) }

// checkAddress returns an *addressError unless an address is public or in allow. An IPv4 address within IPv6 is judged
// as IPv4.
func checkAddress(addr netip.Addr, allow []netip.Prefix) error {
	addr = addr.Unmap().WithZone("")
	in := func(p netip.Prefix) bool { return p.Contains(addr) }
	switch {
	case slices.ContainsFunc(allow, in):
		return nil
	case !addr.Is4() && !publicV6.Contains(addr), slices.ContainsFunc(special, in):
		return &addressError{addr}
	}
	return nil
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
	if len(text) > maxCallback {
		return fmt.Errorf("callback has more than %d bytes", maxCallback)
	}
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("callback is missing")
	case err != nil:
		return errors.New("callback is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("callback does not begin with https://")
	case u.Scheme == "http" && !allowHTTP:
		return errors.New("callback begins with http://, which is not allowed")
	case u.User != nil:
		return errors.New("callback has a user or password")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("callback has a query")
	case strings.Contains(text, "#"):
		return errors.New("callback has a fragment")
	case u.Hostname() == "":
		return errors.New("callback has no host")
	}
	if err := checkHost(u, allow); err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	return nil
}

func checkHost(u *url.URL, allow []netip.Prefix) error {
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("port is not from 1 to 65535")
		}
	}
	host := u.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil {
		return checkAddress(addr, allow)
	}
	// No top-level domain begins with a digit, but some resolvers read 2130706433, 0x7f.1 and 127.1 as 127.0.0.1.
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if last := labels[len(labels)-1]; last == "" || last[0] >= '0' && last[0] <= '9' {
		return errors.New("host is neither a name nor an address")
	}
	return nil
}
