// A start takes as long as there is to ask, and the server answers.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/embedded"
)

// slowLink takes its time for each request.
type slowLink struct{ net.Conn }

func (s slowLink) Write(b []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Conn.Write(b)
}

// Many streams, over a slow link: it takes long to ask for all of them, and the app starts all the same.
func TestManyStreamsStartOverASlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := embedded.New()
		defer server.Close()
		app, rdb := unreachable(func(ctx context.Context) (net.Conn, error) {
			c, err := server.Dial(ctx, "", "")
			return slowLink{c}, err
		})
		for n := range 80 {
			runnel.NewStream(app, fmt.Sprint("stream", n), keyOfItem, nil)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- app.Run(ctx) }()
		for app.Ready() != nil && len(ended) == 0 && time.Since(began) < time.Minute {
			time.Sleep(time.Second)
		}
		t.Logf("ready after %v: %v", time.Since(began), app.Ready())
		cancel()
		if err := <-ended; err != nil || time.Since(began) < 6*time.Second {
			t.Errorf("%.200v after %v", err, time.Since(began))
		}
		if err := errors.Join(app.Close(), rdb.Close()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second) // the pools notice that they are closed
	})
}
