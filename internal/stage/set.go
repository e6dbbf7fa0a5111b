package stage

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/delayqueue"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

//go:embed lua/*.lua
var sources embed.FS

var (
	scripts = store.ReadScripts(sources, "visits", store.Fence, store.Wake, store.Times)

	saveScript   = scripts["save"]
	visitScript  = scripts["visit"]
	deleteScript = scripts["delete"]
	pageScript   = scripts["page"]
	lookScript   = scripts["look"]
	takeScript   = scripts["take"]
	commitScript = scripts["commit"]
	mendScript   = scripts["mend"]
	forgetScript = scripts["forget"]
)

const (
	// Processor is the processor that every set has.
	Processor = "stages"
	// Touch is the stage of touches, at which all stages are asked.
	Touch = "!"
)

// A Set is a set of entities and its stages. Its methods may be called concurrently.
type Set struct {
	client   *store.Client
	name     string
	stages   []string
	external bool // the entities are elsewhere

	keys   sync.Map // keyOf → string: each call names some
	places sync.Map // partition → *store.Partition
}

type keyOf struct {
	kind, stage string
	partition   int
}

// New returns a set; it does no I/O.
func New(c *store.Client, name string, external bool, stages ...string) *Set {
	return &Set{client: c, name: name, stages: stages, external: external}
}

func (s *Set) key(kind string, n int, stage string) string {
	of := keyOf{kind, stage, n}
	if key, ok := s.keys.Load(of); ok {
		return key.(string)
	}
	key := keys.MustKind(kind).Key(s.client.Keys(), s.name, stage, "", n)
	s.keys.Store(of, key)
	return key
}

func (s *Set) queue(n int, stage string) string {
	if stage == Touch {
		return s.key("touch", n, "")
	}
	return s.key("visit", n, stage)
}

func (s *Set) dead(n int, stage string) string { return s.key("visitdead", n, stage) }

func (s *Set) place(n int) *store.Partition {
	if p, ok := s.places.Load(n); ok {
		return p.(*store.Partition)
	}
	p := s.client.Partition(s.name, Processor, n)
	s.places.Store(n, &p)
	return &p
}

// all are the keys of a partition as delete.lua and look.lua want them.
func (s *Set) all(n int) []string {
	all := []string{s.key("ent", n, ""), s.key("visitrun", n, ""), s.key("visitfail", n, ""), s.queue(n, Touch)}
	for _, stage := range s.stages {
		all = append(all, s.queue(n, stage), s.dead(n, stage))
	}
	return all
}

// run runs calls, and passes each reply as texts to its read, or its error.
func (s *Set) run(ctx context.Context, calls []*store.ScriptCall, read func(i int, texts []string, err error)) {
	s.client.Run(ctx, calls...)
	for i, c := range calls {
		texts, err := textsOf(c.Reply)
		if c.Err != nil {
			err = c.Err
		}
		read(i, texts, err)
	}
}

// textsOf returns a flat reply as texts.
func textsOf(reply any) ([]string, error) {
	list, ok := reply.([]any)
	texts := make([]string, len(list))
	for i, one := range list {
		switch one := one.(type) {
		case string:
			texts[i] = one
		case int64:
			texts[i] = strconv.FormatInt(one, 10)
		default:
			ok = false
		}
	}
	if !ok {
		return nil, fmt.Errorf("unexpected reply %v", reply)
	}
	return texts, nil
}

// An Entity is what is stored of one. Version is 0 if there is none.
type Entity struct {
	Version int64
	Passes  string // how often stages have changed it lately; opaque here, without spaces
	Payload string
}

func entityOf(stored string) (e Entity, err error) {
	if stored == "" {
		return Entity{}, nil
	}
	version, rest, _ := strings.Cut(stored, " ")
	e.Passes, e.Payload, _ = strings.Cut(rest, " ")
	e.Version, err = strconv.ParseInt(version, 10, 64)
	return e, err
}

// A Due is when a visit is due, for a script: At or In.
type Due string

// At returns a time, rounded up to a millisecond.
func At(t time.Time) Due { return Due(strconv.FormatInt(delayqueue.Millis(t), 10)) }

// In returns a time from now by the server's clock, rounded up to a millisecond.
func In(d time.Duration) Due { return Due(delayqueue.Delay(d)) }
