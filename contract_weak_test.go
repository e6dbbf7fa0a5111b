package runnel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// Where neither a read nor a connection may be ended, whatever wakes a reader must
// not make the outcome of its read unknown: the executor would join again, which
// wakes the reader of the new one, and so on for ever.
func TestAServerThatEndsNoReads(t *testing.T) {
	srv := redistest.Start(t)
	weak := []any{"ACL", "SETUSER", "weak", "on", ">pw", "~*", "&*", "+@all", "-client|kill", "-client|unblock"}
	if err := srv.Client(t).Do(t.Context(), weak...).Err(); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(srv.URL(), "redis://", "redis://weak:pw@", 1)
	var log syncLog
	app := runnel.New("weak", &runnel.Options{RedisURL: url, Logger: log.logger()})
	defer app.Close()
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: 8})
	got := make(chan string, 100)
	s.Process("print", func(_ context.Context, events *runnel.Events[parcel]) error {
		for p := range events.Records() {
			got <- p.Text
		}
		return nil
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	for i := range 20 {
		if err := s.Send(t.Context(), parcel{Key: fmt.Sprint(i), Text: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if text := <-got; text != fmt.Sprint(i) {
			t.Errorf("got event %s, want %d", text, i)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(log.text(), "rejoining") {
		t.Errorf("it joined again:\n%s", log.text())
	}
}
