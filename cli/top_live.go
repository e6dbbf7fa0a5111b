package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
)

const (
	// actPatience bounds one change in Redis.
	actPatience = 10 * time.Second
	// topTick is how often the age of the numbers is drawn.
	topTick = time.Second
)

type (
	sampleMsg struct {
		sample *inspect.Sample
		err    error
	}
	actedMsg struct {
		text string
		err  error
	}
	tickMsg struct{}
)

func (a actedMsg) String() string {
	if a.err != nil {
		return oneLine(a.err)
	}
	return a.text
}

// A screen connects a topModel to bubbletea, which calls it from one goroutine.
type screen struct {
	m    *topModel
	acts chan<- *topAct // with room for one, and a model allows only one at a time
}

func (s screen) Init() tea.Cmd { return nil }

func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	now := time.Now()
	switch msg := msg.(type) {
	case sampleMsg:
		if msg.err != nil {
			s.m.failed(msg.err, now)
		} else {
			s.m.sampled(msg.sample, now)
		}
	case actedMsg:
		s.m.acted(msg.text, msg.err)
	case tickMsg:
		s.m.ticked(now)
	case tea.WindowSizeMsg:
		s.m.resized(msg.Width, msg.Height)
	case tea.PasteMsg:
		if s.m.input != nil {
			s.m.press("", msg.Content)
		}
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+z" {
			return s, tea.Suspend
		}
		act, quit := s.m.press(msg.String(), msg.Text)
		if act != nil {
			s.acts <- act
		}
		if quit {
			return s, tea.Quit
		}
	}
	return s, nil
}

func (s screen) View() tea.View {
	v := tea.NewView(strings.Join(topView{s.m}.draw(), "\n"))
	v.AltScreen = true
	return v
}

// topLive shows the model until the user quits or ctx ends. Looks, acts and the clock
// have a goroutine each, so that none waits for another.
func topLive(ctx context.Context, s *session, watch *inspect.Watch, m *topModel, options ...tea.ProgramOption) error {
	acts := make(chan *topAct, 1)
	program := tea.NewProgram(screen{m, acts}, append([]tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(s.stdin), tea.WithOutput(raw(s.stdout)), tea.WithoutSignalHandler(),
	}, options...)...)
	running, end := context.WithCancel(ctx)
	defer end()
	look := make(chan struct{}, 1)
	var last actedMsg
	var others sync.WaitGroup
	others.Go(func() { watchOn(running, watch, m.every, look, program.Send) })
	others.Go(func() { last = actOn(running, s.admin, acts, look, program.Send) })
	others.Go(func() {
		tick := time.Tick(topTick)
		for {
			select {
			case <-running.Done():
				return
			case <-tick:
				program.Send(tickMsg{})
			}
		}
	})
	_, err := program.Run()
	end()
	close(acts)
	others.Wait()
	if m.busy != nil { // the user quit before it was done
		printf(s.stderr, "%s: %s\n", s.name, last)
	}
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// watchOn looks again and again, one look at a time, with a pause after each that the channel
// look cuts short.
func watchOn(ctx context.Context, watch *inspect.Watch, pause time.Duration, look <-chan struct{}, send func(tea.Msg)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
		case <-time.After(pause):
		}
		once, cancel := context.WithTimeout(ctx, topPatience)
		sample, err := watch.Look(once)
		cancel()
		if ctx.Err() != nil {
			return
		}
		send(sampleMsg{sample, err})
	}
}

// actOn does what the user confirmed, one act after the other, until acts is closed. It completes
// an act that has begun, and returns the outcome of the last.
func actOn(ctx context.Context, a *admin.Client, acts <-chan *topAct, look chan<- struct{}, send func(tea.Msg)) (last actedMsg) {
	for act := range acts {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), actPatience)
		text, err := act.do(once, a)
		cancel()
		if err != nil {
			err = fmt.Errorf("%s: %w", act, err)
		}
		last = actedMsg{text, err}
		send(last)
		select {
		case look <- struct{}{}:
		default:
		}
	}
	return last
}

// do changes Redis and describes the outcome.
func (a *topAct) do(ctx context.Context, c *admin.Client) (string, error) {
	scope, err := admin.ParseScope(a.scope().String())
	if err != nil {
		return "", err
	}
	switch a.verb {
	case verbPause:
		change, err := c.SetRule(ctx, admin.RulePause, scope, &admin.RuleOptions{Who: a.who, Why: a.why})
		return ruleText(ruleState(change.Rule)), err
	case verbResume:
		_, did, err := ruleRemoved(ctx, c, admin.RulePause, scope)
		return strings.Join(did, "; "), err
	}
	done, err := c.Release(ctx, a.stream, a.processor, a.partition, false)
	return releasedText(done), err
}
