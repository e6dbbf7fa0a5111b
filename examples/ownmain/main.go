// Ownmain is a service with a main of its own: an HTTP server that sends, and a
// worker beside it, on the Redis client that the service has anyway.
//
//	go run ./examples/ownmain                  # the service; needs a redis-server
//	curl -X POST localhost:8080/orders -H "Idempotency-Key: $(uuidgen)" -d '{"customer":"ada","amount":9.99}'
//	curl localhost:8080/ready
//
// With arguments it is the command line that every app has:
//
//	go run ./examples/ownmain worker --dev
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Order struct {
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
}

func main() {
	shared := redis.NewClient(&redis.Options{Addr: setting("REDIS_ADDR", "127.0.0.1:6379")})
	defer shared.Close() // the app does not close what it was given

	app := runnel.New("shop", &runnel.Options{Redis: shared})
	orders := runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)
	orders.Process("bill", runnel.Each(bill), nil)

	if len(os.Args) > 1 {
		cli.Run(app)
	}
	if err := serve(app, orders); err != nil {
		log.Fatal(err)
	}
}

// serve runs server and worker until a signal, or until one of them fails; then
// it ends both: first what sends, then what processes.
func serve(app *runnel.App, orders *runnel.Stream[Order]) error {
	signals, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer app.Close()
	listener, err := net.Listen("tcp", setting("HTTP_ADDR", "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(app, orders)}
	slog.Info("listening", "addr", listener.Addr().String())

	work, drain := context.WithCancel(context.Background())
	defer drain()
	g, ctx := errgroup.WithContext(signals)
	g.Go(func() error { return app.Run(work) })
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done() // a signal, or one of them failed
		defer drain()
		shutdown, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return server.Shutdown(shutdown)
	})
	return g.Wait()
}

func handler(app *runnel.App, orders *runnel.Stream[Order]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var order Order
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// With an error the order may or may not be in. A client that gives each order a
		// UUID as its Idempotency-Key may repeat the request: the order is in once.
		once := runnel.Outgoing[Order]{Record: order, DedupID: r.Header.Get("Idempotency-Key")}
		if _, err := orders.SendEvents(r.Context(), once); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		if err := app.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return mux
}

func bill(ctx context.Context, e *runnel.Event, order Order) error {
	fmt.Printf("billed %.2f to %s\n", order.Amount, order.Customer)
	return nil
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
