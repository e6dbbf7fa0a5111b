package keys

import (
	"slices"
	"strconv"
	"strings"
)

// A Part has the components of a key: they are the same in every layout.
type Part struct {
	Kind      string // "strm", "own", … as it stands in the name
	Names     string // stream, processor and executor, as far as the kind has them, with dots between
	Partition int    // -1: it belongs to none
	ID        string // of what was sent once
}

// Parse is the inverse of Name. ok is false for a key that is not the app's, or not of
// this layout, or of no kind that is known.
func (k Keys) Parse(key string) (p Part, ok bool) {
	kind, rest, ok := strings.Cut(key, ":")
	kind, framework := strings.CutPrefix(kind, "__")
	if !ok || !framework {
		return Part{}, false
	}
	p = Part{Kind: kind, Partition: -1}
	if of, _ := KindOf(kind); of.ID {
		if rest, p.ID, ok = strings.Cut(rest, ":"); !ok {
			return Part{}, false
		}
	}
	if k.Layout == Cluster {
		p, ok = k.parseTagged(p, rest)
	} else {
		p, ok = k.parsePlain(p, rest)
	}
	return p, ok && known(kind, p.Partition >= 0)
}

// known reports whether keys of this name are in partitions, or outside of them.
func known(name string, partitioned bool) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Name == name && k.Per.partitioned() == partitioned })
}

func (k Keys) parsePlain(p Part, rest string) (Part, bool) {
	app, names, more := strings.Cut(rest, ".")
	if app != k.App || more && names == "" {
		return Part{}, false
	}
	p.Names = names
	if !known(p.Kind, true) {
		return p, true
	}
	dot := strings.LastIndexByte(names, '.')
	if p.Kind == "lock" && dot >= 0 && names[dot+1:] == "admin" {
		return p, true
	}
	if dot < 1 {
		return Part{}, false
	}
	p.Names = names[:dot]
	return p.numbered(names[dot+1:])
}

func (k Keys) parseTagged(p Part, rest string) (Part, bool) {
	tag, names, ok := strings.Cut(rest, "}")
	tag, open := strings.CutPrefix(tag, "{")
	if !ok || !open || names != "" && len(names) < 2 {
		return Part{}, false
	}
	p.Names = strings.TrimPrefix(names, ".")
	if p.Names != "" && names[0] != '.' {
		return Part{}, false
	}
	app, n, partitioned := strings.Cut(tag, ".")
	if app != k.App {
		return Part{}, false
	}
	if !partitioned {
		return p, true
	}
	if p.Names == "" {
		return Part{}, false
	}
	return p.numbered(n)
}

func (p Part) numbered(n string) (Part, bool) {
	var err error
	p.Partition, err = strconv.Atoi(n)
	return p, err == nil && p.Partition >= 0 && strconv.Itoa(p.Partition) == n
}

// Name is the key of a part.
func (k Keys) Name(p Part) string {
	if p.Partition < 0 {
		if p.Names == "" {
			return k.shared(p.Kind)
		}
		return k.shared(p.Kind, p.Names)
	}
	key := k.partitioned(p.Kind, p.Partition, p.Names)
	if of, _ := KindOf(p.Kind); of.ID {
		key += ":" + p.ID
	}
	return key
}

// Patterns are globs that match every key of the app, and few others.
func (k Keys) Patterns() []string {
	if k.Layout == Cluster {
		return []string{"__*:{" + k.App + "}*", "__*:{" + k.App + ".*"}
	}
	return []string{"__*:" + k.App, "__*:" + k.App + ".*"}
}
