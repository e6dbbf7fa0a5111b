package faultproxy

import (
	"testing"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestSetTarget(t *testing.T) {
	p, c, _ := setup(t)
	other := redistest.Start(t)
	p.SetTarget(other.Addr())
	p.CutAll()
	if err := c.Set(t.Context(), "k", "here", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := other.Client(t).Get(t.Context(), "k").Val(); got != "here" {
		t.Errorf("the new target has %q, want \"here\"", got)
	}
}

func TestContainingWantsAllTexts(t *testing.T) {
	p, c, _ := setup(t)
	rule := p.On("SET", 1).Containing("\r\nk\r\n", "\r\n2\r\n").Do(Answer("+HURT\r\n"))
	for _, set := range []struct{ key, value, want string }{{"k", "1", "OK"}, {"l", "2", "OK"}, {"k", "2", "HURT"}} {
		if got := c.Set(t.Context(), set.key, set.value, 0).Val(); got != set.want {
			t.Errorf("SET %s %s answered %q, want %q", set.key, set.value, got, set.want)
		}
	}
	rule.Wait(t)
}
