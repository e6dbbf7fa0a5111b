package keys

import "testing"

// A key of any kind is parsed, and has its name in the other layout.
func TestEveryNameIsParsed(t *testing.T) {
	plain, tagged := Keys{"example", Standalone}, Keys{"example", Cluster}
	for _, kind := range Kinds {
		for _, stream := range []string{"orders", "a.b", "3", "x.4", "admin"} {
			for _, processor := range []string{"printer", "admin"} {
				for _, id := range []string{"x1", "a:b}.{c.9", ""} {
					of := func(k Keys) string { return kind.Key(k, stream, processor, id, 65535) }
					for _, from := range []Keys{plain, tagged} {
						p, ok := from.Parse(of(from))
						if (id == "x1" || kind.ID) && (!ok || plain.Name(p) != of(plain) || tagged.Name(p) != of(tagged)) {
							t.Errorf("%q is %+v, %v: %q and %q", of(from), p, ok, plain.Name(p), tagged.Name(p))
						}
					}
				}
			}
		}
	}
}

// Names of their own and names by the kind are the same.
func TestKindsNameWhatMethodsName(t *testing.T) {
	for _, k := range []Keys{{"example", Standalone}, {"example", Cluster}} {
		due, named := k.Delayed("s", 3), map[string]int{}
		for _, key := range []string{
			k.Partition("s", 3), k.Once("s", 3, "x1"), due.Due, due.Versions, due.Data, due.Sequence, k.Lock("s", "p", 3), k.Ownership("s", "p", 3),
			k.Parked("s", "p", 3), k.Retry("s", "p", 3), k.Dead("s", "p", 3), k.Membership("s", "p"), k.Control("s", "p"), k.AppControl(),
			k.Rules(), k.Blocks(), k.Audit(), k.Tasks(), k.AdminLock("s", "p"), k.Beat("s", "p", "x1"), k.Leader(), k.Meta("s"), k.Streams(),
		} {
			named[key]++
		}
		for _, kind := range Kinds {
			if !kind.Old && kind.Extension == "" && named[kind.Key(k, "s", "p", "x1", 3)] != 1 {
				t.Errorf("no method, or more than one, names %s", kind.Key(k, "s", "p", "x1", 3))
			}
			delete(named, kind.Key(k, "s", "p", "x1", 3))
		}
		if len(named) > 0 {
			t.Errorf("of no kind: %v", named)
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
