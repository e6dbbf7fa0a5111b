package webhook

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"code.dny.dev/ssrf"
)

func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "100.63.255.255": true, "100.128.0.0": true, "172.15.255.255": true, "172.32.0.1": true, "192.0.1.1": true,
		"198.17.255.255": true, "198.20.0.0": true, "223.255.255.255": true, "2606:4700::1111": true, "2001:4860:4860::8888": true, "2a00:1450::1": true, "::ffff:8.8.8.8": false,
		"0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "100.64.0.0": false, "100.127.255.255": false, "127.0.0.1": false, "127.255.255.255": false,
		"169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false, "192.0.0.8": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::7f00:1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:0:7f00:1": false, "64:ff9b::8.8.8.8": false, "64:ff9b:1::1": false,
		"100::1": false, "2001::1": false, "2001:2::1": false, "2001:10::1": false, "2001:20::1": false, "2001:db8::1": false, "2002:808:808::1": false, "3fff::1": false,
		"4000::1": false, "5f00::1": false, "fc00::1": false, "fd00::1": false, "fe80::1": false, "fe80::1%eth0": false, "febf::1": false, "fec0::1": false, "ff02::1": false,
	} {
		err := guard(nil).SafeAddr(netip.MustParseAddr(text))
		if (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && !errors.Is(err, ssrf.ErrProhibitedIP) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAllowedAddresses(t *testing.T) {
	allow := prefixes("127.0.0.0/8", "fe80::/10", "10.1.0.0/16")
	for text, want := range map[string]bool{
		"127.0.0.1": true, "fe80::1": true, "::ffff:127.0.0.1": false, "fe80::1%eth0": false, "10.1.2.3": true, "8.8.8.8": true,
		"::1": false, "10.2.0.1": false, "0.0.0.0": false,
	} {
		if err := guard(allow).SafeAddr(netip.MustParseAddr(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A name may be public when it is looked up and lead to the loopback when it is dialled: what is dialled counts.
func TestTheDialledAddressIsJudged(t *testing.T) {
	control := guard(nil).Safe
	for _, tt := range []struct{ network, address, want string }{
		{"tcp4", "8.8.8.8:443", ""},
		{"tcp6", "[2606:4700::1111]:443", ""},
		{"tcp4", "127.0.0.1:443", "prohibited IP"},
		{"tcp6", "[::1]:443", "prohibited IP"},
		{"tcp6", "[::ffff:127.0.0.1]:443", "prohibited IP"},
		{"tcp6", "[fe80::1%eth0]:443", "prohibited IP"},
		{"tcp", "hooks.example.com:443", "prohibited network"},
		{"udp4", "8.8.8.8:53", "prohibited network"},
		{"unix", "/run/redis.sock", "prohibited network"},
	} {
		err := control(tt.network, tt.address, nil)
		if got := errText(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: got %q, want %q", tt.network, tt.address, got, tt.want)
		}
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCallbacks(t *testing.T) {
	for text, want := range map[string]string{
		"https://hooks.example.com/in/7f3a":        "",
		"https://hooks.example.com":                "",
		"https://hooks.example.com.:8443/":         "",
		"https://8.8.8.8/7f3a":                     "",
		"https://[2606:4700::1111]:443/7f3a":       "",
		"https://xn--bcher-kva.example/7f3a":       "",
		"https://localhost/7f3a":                   "", // the dialer refuses what it leads to
		"http://hooks.example.com/7f3a":            "begins with http://",
		"HTTPS://hooks.example.com/7f3a":           "",
		"":                                         "does not begin with https://",
		"hooks.example.com/7f3a":                   "does not begin with https://",
		"ftp://hooks.example.com/7f3a":             "does not begin with https://",
		"//hooks.example.com/7f3a":                 "does not begin with https://",
		"https:7f3a":                               "has no host that",
		"https:///7f3a":                            "has no host that",
		"https://:443/7f3a":                        "has no host that",
		"https://u7f3a@hooks.example.com/":         "has a user, a query or a fragment",
		"https://u:7f3a@hooks.example.com/":        "has a user, a query or a fragment",
		"https://@hooks.example.com/":              "has a user, a query or a fragment",
		"https://hooks.example.com/?k=7f3a":        "has a user, a query or a fragment",
		"https://hooks.example.com/7f3a?":          "has a user, a query or a fragment",
		"https://hooks.example.com/#7f3a":          "has a user, a query or a fragment",
		"https://hooks.example.com/7f3a#":          "has a user, a query or a fragment",
		"https://hooks example.com/7f3a":           "is no URL",
		"https://hooks.example.com/\x00/7f3a":      "is no URL",
		"https://hooks.example.com:7f3a/":          "is no URL",
		"https://hooks.example.com:/7f3a":          "port",
		"https://hooks.example.com:0/7f3a":         "port",
		"https://hooks.example.com:65536/":         "port",
		"https://127.0.0.1/7f3a":                   "127.0.0.1 is not a permitted",
		"https://[::ffff:10.0.0.1]/7f3a":           "10.0.0.1 is not a permitted",
		"https://[fe80::1%25eth0]/7f3a":            "fe80::1 is not a permitted",
		"https://2130706433/7f3a":                  "no host that is a name or an address",
		"https://0x7f000001/7f3a":                  "no host that is a name or an address",
		"https://0x7f.1/7f3a":                      "no host that is a name or an address",
		"https://127.1/7f3a":                       "no host that is a name or an address",
		"https://0177.0.0.1/7f3a":                  "no host that is a name or an address",
		"https://127.0.0.1./7f3a":                  "no host that is a name or an address",
		"https://hooks..7/7f3a":                    "no host that is a name or an address",
		"https://./7f3a":                           "no host that is a name or an address",
		"https://a/" + strings.Repeat("7f3a", 254): "more than 1024 bytes",
	} {
		err := checkCallback(text, false, nil)
		if (want == "") != (err == nil) || !strings.Contains(errText(err), want) || strings.Contains(errText(err), "7f3a") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if err := checkCallback("http://127.0.0.1:8080/in", true, prefixes("127.0.0.0/8")); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if err := checkCallback("https://a/"+strings.Repeat("a", 1014), false, nil); err != nil {
		t.Errorf("1024 bytes: %v", err)
	}
}
