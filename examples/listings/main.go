// Listings is a marketplace whose listings are geocoded, checked, priced and closed, each by a stage that
// knows nothing of the others.
//
//	go run ./examples/listings worker --dev
//	RUNNEL_REDIS_URL=redis://127.0.0.1:6379 go run ./examples/listings stage ls
//	RUNNEL_REDIS_URL=redis://127.0.0.1:6379 go run ./examples/listings stage show listings 3
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/stage"
)

// A Listing is an entity: all that the stages know stands in it.
type Listing struct {
	ID, Address string
	Place       string // "" before it is geocoded
	Photos      int
	Checked     int // photos that were looked at
	Price       int // 0 before it is priced
	Expires     time.Time
	Closed      bool
}

func main() {
	app, _ := newApp(5 * time.Second)
	cli.Run(app)
}

// newApp returns an app whose listings expire after some time.
func newApp(expire time.Duration) (*runnel.App, *stage.Set[Listing]) {
	app := runnel.New("market", nil)
	listings := stage.New(app, "listings", func(l Listing) string { return l.ID }, nil)

	listings.Stage("geocode", func(l Listing) bool { return l.Place == "" && !l.Closed }, func(ctx context.Context, l *Listing) (stage.Result, error) {
		place, err := geocode(ctx, l.Address)
		if err != nil {
			return stage.Untouched, err // attempted again, after a wait
		}
		l.Place = place
		return stage.Updated, nil // stored, if it was not changed meanwhile; then all stages are asked
	}, &stage.StageOptions{Retry: &runnel.Retry{Max: 10, MinBackoff: 100 * time.Millisecond}})

	listings.Stage("photos", func(l Listing) bool { return l.Checked != l.Photos && !l.Closed }, func(_ context.Context, l *Listing) (stage.Result, error) {
		l.Checked = l.Photos
		return stage.Updated, nil
	}, nil)

	listings.Stage("price", func(l Listing) bool { return l.Price == 0 && l.Place != "" && !l.Closed }, func(_ context.Context, l *Listing) (stage.Result, error) {
		l.Price = 10 + len(l.Place) + l.Photos
		return stage.Updated, nil
	}, nil)

	listings.Stage("close", func(l Listing) bool { return !l.Closed }, func(ctx context.Context, l *Listing) (stage.Result, error) {
		if stage.Now(ctx).Before(l.Expires) {
			return stage.Untouched.At(l.Expires), nil // visit it then
		}
		l.Closed = true
		slog.InfoContext(ctx, "closed", "listing", l.ID, "place", l.Place, "price", l.Price)
		return stage.Updated, nil
	}, nil)

	var imported atomic.Int64
	app.Every("import", time.Second, func(ctx context.Context) error {
		n := imported.Add(1)
		id := fmt.Sprint(n)
		err := listings.Put(ctx, Listing{ID: id, Address: id + " Main St", Expires: time.Now().Add(expire)})
		if n == 1 || err != nil {
			return err
		}
		// While stages may be at work on the one before: both changes are there in the end.
		_, err = listings.Update(ctx, fmt.Sprint(n-1), func(l *Listing) error {
			l.Photos++
			return nil
		})
		return err
	}, &runnel.TaskOptions{Leader: true})
	return app, listings
}

var calls atomic.Int64

// geocode stands for a service that fails every third time.
func geocode(_ context.Context, address string) (string, error) {
	if calls.Add(1)%3 == 0 {
		return "", errors.New("the geocoder is overloaded")
	}
	return "place of " + address, nil
}
