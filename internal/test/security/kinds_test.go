package security

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
)

// An operator can have the right to pause without the right to block, and the other way round, as
// documented. An error names the missing right, and leaves the rule unchanged.
func TestWhoPausesNeedNotBlock(t *testing.T) {
	for layout, of := range layouts {
		t.Run(layout, func(t *testing.T) {
			s := newScene(t, layout)
			k := keys.Keys{App: "shop", Layout: of}
			for user, key := range map[string]string{"shop-pauser": k.Blocks(), "shop-blocker": k.Rules()} {
				for _, line := range documented(t, layout) {
					if strings.HasPrefix(line, "ACL SETUSER shop-operator ") {
						line = strings.Replace(line, " ~"+key+" ", " %R~"+key+" ", 1)
						do(t, s.server.Client(t), strings.Replace(line, "shop-operator", user, 1))
					}
				}
			}
			pause, resume := []string{"pause", "orders", "--yet"}, []string{"resume", "orders"}
			block, unblock := []string{"block", "orders", "--yet", "--as-admin"}, []string{"unblock", "orders", "--as-admin"}
			refused := func(user, key string, args ...string) {
				t.Helper()
				code, _, errs := s.command(user, args...)
				if code != 1 || !strings.Contains(errs, "lacks the right to write keys "+key) || !strings.Contains(errs, "ACL SETUSER "+user+" ~"+key) {
					t.Errorf("%s: %q: code %d: %s", user, args, code, errs)
				}
			}
			inForce := func(want string) {
				t.Helper()
				if out := s.run(0, "shop-watcher", "rules", "ls"); !strings.Contains(out, want) {
					t.Errorf("rules ls: %s, want %s", out, want)
				}
			}
			s.run(0, "shop-pauser", pause...)
			refused("shop-blocker", k.Rules(), resume...)
			inForce("pause  stream:orders")
			s.run(0, "shop-pauser", resume...)
			refused("shop-blocker", k.Rules(), pause...)
			for _, setter := range []string{"shop-blocker", "shop-operator"} { // this one may write a copy, too
				s.run(0, setter, block...)
				refused("shop-pauser", k.Blocks(), unblock...)
				inForce("block  stream:orders")
				s.run(0, "shop-blocker", unblock...)
				inForce("nothing is paused, blocked or quarantined")
			}
			refused("shop-pauser", k.Blocks(), block...)
			inForce("nothing is paused, blocked or quarantined")
		})
	}
}
