package admin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/notes"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/rebalance"
)

// noted returns the client of an app with the extension notes, whose part pins belongs to the stream board.
func noted(t *testing.T) (*Client, *store.Client) {
	t.Helper()
	app := runnel.New("shop", &runnel.Options{RedisURL: redistest.Start(t).URL()})
	t.Cleanup(func() { app.Close() })
	extension.Register(app, notes.New())
	a := New(app)
	c, err := a.app.Client()
	must(t, err)
	stream(t, c, "board", "keeper")
	return a, c
}

func TestAScopeMayBeAPartOfAnExtension(t *testing.T) {
	a, _ := noted(t)
	for _, s := range []Scope{ProcessorScope("board", "pins"), PartitionScope("board", "pins", 3), ProcessorScope("board", "keeper")} {
		must(t, a.CheckScope(t.Context(), s))
	}
	err := a.CheckScope(t.Context(), ProcessorScope("board", "wall"))
	if no := (*NotFoundError)(nil); !errors.As(err, &no) || strings.Join(no.There, " ") != "keeper pins" {
		t.Errorf("a part that is not there: %v", err)
	}
}

// A part has no executors of its own: Wait asks those of the processor that runs it.
func TestWaitForAPartAsksItsProcessor(t *testing.T) {
	a, c := noted(t)
	ctx := t.Context()
	const executor = "eeeeeeeeeeeeeeee"
	g := rebalance.Group{}.Join(executor, rebalance.Executor{Worker: "w1", JoinedAt: time.Now(), Expiry: time.Hour}, 4, "")
	must(t, c.Redis().Set(ctx, c.Keys().Membership("board", "keeper"), string(g.Encode()), time.Hour).Err())
	beat := func(known rules.Generations) {
		must(t, c.Redis().Set(ctx, c.Keys().Beat("board", "keeper", executor), store.HeartbeatInfo{Rules: known}.Encode(), time.Hour).Err())
	}
	beat(rules.Generations{})
	pins := ProcessorScope("board", "pins")
	change, err := a.SetRule(ctx, RulePause, pins, nil)
	must(t, err)
	waits := make(chan string, 1000)
	ended := make(chan error, 1)
	go func() { ended <- a.WithProgress(func(what string, _, _ int64) { waits <- what }).Wait(ctx, pins) }()
	select {
	case what := <-waits:
		if what != "waiting for board/keeper on w1" {
			t.Error(what)
		}
	case err := <-ended:
		t.Fatalf("Wait ended before the executor of board/keeper knew the rule: %v", err)
	}
	beat(rules.Generations{Pauses: change.Generation})
	must(t, <-ended)
}

func TestStatusHasTheFindingsOfExtensions(t *testing.T) {
	a, c := noted(t)
	for _, name := range []string{"door", "gate", "wall"} {
		_, err := notes.Add(t.Context(), c, name, "mind it")
		must(t, err)
	}
	s, err := a.Status(t.Context())
	must(t, err)
	if last := s.Findings[len(s.Findings)-1]; last != "3 notes, above 2: read them" {
		t.Errorf("findings %q", s.Findings)
	}
}
