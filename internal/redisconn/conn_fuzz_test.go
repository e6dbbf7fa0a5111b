package redisconn

import (
	"net"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzURL parses any text as a Redis URL. No error shows the text in the password's place.
func FuzzURL(f *testing.F) {
	const secret = "s3cr3t-hunter2"
	for _, before := range []string{"user:", ":", "", "u:x%zz", "u:a@", "u:/?#", "u:[::1"} {
		f.Add("redis://", before, "@127.0.0.1:6379/0?db=1")
		f.Add("rediss://", before, "@[::1/%zz?password=x")
		f.Add("unix://", before, "@/run/redis.sock")
		f.Add("http://", before, "@")
		f.Add("redis+sentinel://", before, "@one:1,two/shop/0?sentinel_password=x")
		f.Add("rediss+sentinel://", before, "@one/%zz?a@b")
		f.Add("redis+cluster://", before, "@one:1,two,[::1]:3/0?db=0")
		f.Add("rediss+cluster://", before, "@one,/1?a@b")
	}
	corpus.Add(f)
	f.Fuzz(func(t *testing.T, scheme, before, after string) {
		if !strings.Contains(after, "@") || !strings.HasSuffix(scheme, "://") {
			return
		}
		o := Options{URL: scheme + before + secret + after, Keys: keys.Keys{App: "shop", Layout: keys.Cluster}}
		if IsCluster(o) {
			if _, err := clusterOptions(o); err != nil && strings.Contains(err.Error(), secret) {
				t.Fatal(err)
			}
			return
		}
		_, s, err := baseOptions(o)
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Fatal(err)
		}
		if s != nil {
			s.close()
		}
	})
}

// FuzzRedirection parses any text as a node's reply: a redirection leads to a slot and an address.
func FuzzRedirection(f *testing.F) {
	for _, text := range []string{"MOVED 3999 127.0.0.1:6381", "ASK 0 [::1]:1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED 1 :6379", "ASK 1 a", "MOVED", "TRYAGAIN x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slot, addr, _ := redirection(ScriptError(text))
		if addr == "" {
			return
		}
		if _, _, err := net.SplitHostPort(addr); err != nil || slot < 0 || slot >= slotCount {
			t.Errorf("%q leads to %d at %q", text, slot, addr)
		}
	})
}
