package middleware_test

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/middleware"
)

func TestMistakesPanic(t *testing.T) {
	for want, fn := range map[string]func(){
		"middleware.RetryInPlace(0, 1s): want at least 1 attempt":                        func() { middleware.RetryInPlace(0, time.Second) },
		"middleware.RetryInPlace(1, -1ns): want at least 1 attempt and no negative wait": func() { middleware.RetryInPlace(1, -1) },
		"middleware.Expire(-1s): want a positive duration":                               func() { middleware.Expire(-time.Second) },
		"NewStream orders.dead: the app has a stream of that name":                       func() { s := stream(refuse, 0); middleware.DeadLetters(s); middleware.DeadLetters(s) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("panicked with %q, want %q", text, want)
				}
			}()
			fn()
		}()
	}
}
