package keys

import "testing"

// Whatever has a name in one layout is found again, and has its name in the other.
func TestEveryNameIsParsed(t *testing.T) {
	plain, tagged := Keys{"example", Standalone}, Keys{"example", Cluster}
	for _, stream := range []string{"orders", "a.b", "3", "x.4", "admin"} {
		for name, of := range map[string]func(Keys) string{
			"partition":  func(k Keys) string { return k.Partition(stream, 3) },
			"once":       func(k Keys) string { return k.Once(stream, 3, "a:b}.{c.9") },
			"empty once": func(k Keys) string { return k.Once(stream, 3, "") },
			"due":        func(k Keys) string { return k.Delayed(stream, 65535).Due },
			"run":        func(k Keys) string { return k.partitioned("duerun", 0, stream) },
			"versions":   func(k Keys) string { return k.Delayed(stream, 0).Versions },
			"data":       func(k Keys) string { return k.Delayed(stream, 0).Data },
			"attempts":   func(k Keys) string { return k.partitioned("dueatt", 0, stream) },
			"sequence":   func(k Keys) string { return k.Delayed(stream, 0).Sequence },
			"lock":       func(k Keys) string { return k.Lock(stream, "printer", 3) },
			"lock 2":     func(k Keys) string { return k.Lock(stream, "admin", 3) },
			"ownership":  func(k Keys) string { return k.Ownership(stream, "printer", 3) },
			"parked":     func(k Keys) string { return k.Parked(stream, "printer", 3) },
			"retry":      func(k Keys) string { return k.Retry(stream, "printer", 3) },
			"dead":       func(k Keys) string { return k.Dead(stream, "printer", 3) },
			"membership": func(k Keys) string { return k.Membership(stream, "printer") },
			"control":    func(k Keys) string { return k.Control(stream, "printer") },
			"admin lock": func(k Keys) string { return k.AdminLock(stream, "printer") },
			"beat":       func(k Keys) string { return k.Beat(stream, "printer", "x1") },
			"all":        func(k Keys) string { return k.AppControl() },
			"rules":      func(k Keys) string { return k.Rules() },
			"blocks":     func(k Keys) string { return k.Blocks() },
			"audit":      func(k Keys) string { return k.Audit() },
			"tasks":      func(k Keys) string { return k.Tasks() },
			"leader":     func(k Keys) string { return k.Leader() },
			"streams":    func(k Keys) string { return k.Streams() },
			"meta":       func(k Keys) string { return k.Meta(stream) },
		} {
			for _, from := range []Keys{plain, tagged} {
				key := of(from)
				p, ok := from.Parse(key)
				if !ok || plain.Name(p) != of(plain) || tagged.Name(p) != of(tagged) {
					t.Errorf("%s of %s: %q is %+v, %v: %q and %q", name, stream, key, p, ok, plain.Name(p), tagged.Name(p))
				}
			}
		}
	}
}

func TestOtherNamesAreNotParsed(t *testing.T) {
	for _, key := range []string{
		"", "__strm", "strm:example.orders.3", "__strm:example", "__strm:example.orders", "__strm:example.orders.x", "__strm:example.orders.03",
		"__strm:example.orders.-1", "__strm:examples.orders.3", "__what:example.orders", "__id:example.orders.3", "__memb:other.orders.p",
		"__strm:{example}.orders", "__strm:{example.x}.orders", "__strm:{example.3}", "__strm:{example.3}orders", "__strm:{other.3}.orders", "__rules:{example.1}.x",
	} {
		for _, layout := range []string{Standalone, Cluster} {
			if p, ok := (Keys{"example", layout}).Parse(key); ok {
				t.Errorf("%v: %q is %+v", layout, key, p)
			}
		}
	}
}
