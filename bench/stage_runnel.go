package main

import (
	"context"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/stage"
)

// declare declares the set of a task. do is called by its busy stage; the others want nothing.
func (f form[T]) declare(app *runnel.App, t Task, do stage.Func[T]) *stage.Set[T] {
	set := stage.New(app, t.Stream, f.id, &stage.Options{Partitions: t.Partitions, Codec: f.codec})
	for i, name := range t.stageNames() {
		when := f.open
		if i > 0 {
			when = func(T) bool { return false }
		}
		set.Stage(name, when, do, &stage.StageOptions{Concurrency: t.Places})
	}
	return set
}

// runnelStage visits all entities of a set, with a function that does nothing but close them.
func runnelStage(ctx context.Context, t Task) (Result, error) {
	if t.Codec == "msgpack" {
		return listings.visitAll(ctx, t)
	}
	return blobs.visitAll(ctx, t)
}

func (f form[T]) visitAll(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	m := newMeter(t.Events)
	f.declare(app, t, func(_ context.Context, e *T) (stage.Result, error) {
		f.close(e)
		m.add(1)
		return stage.Updated, nil
	})
	if err := runUntil(ctx, app, m.wait); err != nil {
		return nil, err
	}
	return m.result(), t.settled(ctx)
}

// runnelPut stores entities by Put, Count at a time.
func runnelPut(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	set := blobs.declare(app, t, func(context.Context, *blob) (stage.Result, error) { return stage.Untouched, nil })
	entities := make([]blob, t.distinct())
	for i := range entities {
		var err error
		if entities[i], err = blobs.make(entityID(i), t.Size); err != nil {
			return nil, err
		}
	}
	return t.produce(ctx, func(ctx context.Context, from, to int) error {
		return set.Put(ctx, entities[from:to]...)
	})
}

// idleSet measures a worker whose set has nothing to do.
func idleSet(ctx context.Context, t Task) (Result, error) {
	return t.idle(ctx, func(app *runnel.App) {
		blobs.declare(app, t, func(context.Context, *blob) (stage.Result, error) { return stage.Untouched, nil })
	})
}
