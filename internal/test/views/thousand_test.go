package views

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// With 1 024 partitions every command takes few requests: none makes one for each partition.
// Durations are logged, for docs/operating.md; they are not checked here.
func TestCommandsOfAThousandPartitions(t *testing.T) {
	server := redistest.Start(t)
	counter := redistest.CountingDialer(nil)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: counter.Dial})
	defer rdb.Close()
	app := runnel.New("shop", &runnel.Options{Redis: rdb, Logger: slog.New(slog.DiscardHandler), Stream: runnel.StreamOptions{Partitions: 1024, Codec: codec.JSON, KeyField: "key"}})
	defer app.Close()
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Key }, nil)
	orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Raw() {
			continue
		}
		return nil
	}, nil)
	fill(t, orders)
	drain(t, app)
	for _, tt := range []struct {
		command string
		most    int64 // round trips
	}{
		{"status", 40},
		{"status orders/printer --output json", 40},
		{"check --max-lag 10", 40},
		{"workers ls", 40},
		{"doctor", 60},
		{"stream ls", 40},
		{"stream info orders", 40},
		{"stream verify orders", 100},
		{"tail orders", 40},
		{"tail orders --from start --grep k17", 40},
		{"processor ls", 40},
		{"processor info orders/printer", 40},
		{"processor reset orders/printer --to start --dry-run", 40},
		{"parked ls orders/printer", 40},
		{"dead ls orders/printer", 40},
		{"delayed ls orders", 40},
		{"rules ls", 20},
		{"pause orders/printer --why test", 40},
		{"resume orders/printer", 40},
		{"processor move orders/printer 17 --unpin", 40},
	} {
		t.Run(tt.command, func(t *testing.T) {
			counter.Reset()
			began := time.Now()
			var out, errs bytes.Buffer
			code := cli.Main(t.Context(), app, strings.Fields(tt.command), strings.NewReader(""), &out, &errs)
			took, n := time.Since(began), counter.RoundTrips()
			t.Logf("%-50s %8v %5d round trips, %5d requests, %d bytes", tt.command, took.Round(time.Millisecond), n, counter.Total(), out.Len())
			if nobodyWorks := strings.HasPrefix(tt.command, "check") && code == 3; code != 0 && !nobodyWorks {
				t.Errorf("code %d: %s", code, errs.String())
			}
			if n > tt.most {
				t.Errorf("%d round trips, at most %d are expected", n, tt.most)
			}
		})
	}
}

func fill(t *testing.T, orders *runnel.Stream[order]) {
	t.Helper()
	batch := make([]order, 8192)
	for i := range batch {
		batch[i].Key = fmt.Sprint("k", i)
	}
	if err := orders.Send(t.Context(), batch...); err != nil {
		t.Fatal(err)
	}
}

func drain(t *testing.T, app *runnel.App) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	redistest.Eventually(t, "drained", func() bool {
		var out bytes.Buffer
		return app.Ready() == nil && cli.Main(t.Context(), app, []string{"check", "--max-lag", "0"}, strings.NewReader(""), &out, &out) == 0
	})
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
