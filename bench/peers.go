package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	redis7 "github.com/go-redis/redis/v7"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/robinjoseph08/redisqueue/v2"
)

// topic is a Redis stream with messages of watermill.
func (t Task) topic(n int) string { return fmt.Sprint(t.Stream, ".", n) }

// fillTopics appends the events of a task to its topics, in watermill's own format.
func fillTopics(ctx context.Context, rdb *redis.Client, t Task) error {
	payload := make([]byte, t.Size)
	return appendAll(ctx, rdb, t, func(i int) (*redis.XAddArgs, error) {
		topic := t.topic(i % t.Partitions)
		values, err := redisstream.DefaultMarshallerUnmarshaller{}.Marshal(topic, message.NewMessage(watermill.NewUUID(), payload))
		return &redis.XAddArgs{Stream: topic, Values: values}, err
	})
}

// watermillDrain has a subscriber for each topic, all of a group that begins at their
// start, and a goroutine for each that acks message after message. Several topics are
// its only way to have more than one message on its way: it reads one at a time, and
// waits for each ack. Pool is the size of a client that all share, 0: one each.
func watermillDrain(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	m := newMeter(t.Events)
	for i := range t.Partitions {
		own := rdb
		if t.Pool == 0 {
			var err error
			if own, err = newClient(t); err != nil {
				return nil, err
			}
		}
		sub, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
			Client: own, ConsumerGroup: t.Run, OldestId: "0", DisableIndefiniteInitialBlock: true,
		}, watermill.NopLogger{})
		if err != nil {
			return nil, err
		}
		messages, err := sub.Subscribe(ctx, t.topic(i))
		if err != nil {
			return nil, err
		}
		go func() { // to the end of the process: closing waits for reads that block
			for msg := range messages {
				m.add(1)
				msg.Ack()
			}
		}()
	}
	if err := m.wait(ctx); err != nil {
		return nil, err
	}
	result := m.result()
	for i := range t.Partitions {
		if err := rdb.XGroupDestroy(ctx, t.topic(i), t.Run).Err(); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// fillQueue enqueues the tasks of a run: asynq's are gone when they were processed.
func fillQueue(ctx context.Context, b *Bench, t *Task) error {
	client := asynq.NewClientFromRedisClient(b.rdb)
	payload := make([]byte, t.Size)
	return Task{Count: 1, Readers: senders, Size: t.Size}.share(ctx, t.Events, func(ctx context.Context, _, _ int) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask("order", payload), asynq.Queue(t.Run))
		return err
	})
}

// asynqDrain processes a queue with as many goroutines as Readers says. It keeps no
// order, and takes tasks one by one, each with a script and another one when it is done.
func asynqDrain(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	srv := asynq.NewServerFromRedisClient(rdb, asynq.Config{
		Concurrency: t.Readers, Queues: map[string]int{t.Run: 1}, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second,
	})
	m := newMeter(t.Events)
	if err := srv.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		m.add(1)
		return nil
	})); err != nil {
		return nil, err
	}
	if err := m.wait(ctx); err != nil {
		return nil, err
	}
	result := m.result()
	srv.Shutdown()
	return result, nil
}

// redisqueueDrain processes the partitions that Runnel reads, with a group that begins
// at their start, with as many goroutines as Readers says and a buffer of Count
// messages. It keeps no order, and acks message after message.
func redisqueueDrain(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	o, err := redis7.ParseURL(t.URL)
	if err != nil {
		return nil, err
	}
	o.PoolSize = t.Readers + 10
	c, err := redisqueue.NewConsumerWithOptions(&redisqueue.ConsumerOptions{
		GroupName: t.Run, VisibilityTimeout: time.Minute, BlockingTimeout: time.Second, ReclaimInterval: time.Minute,
		BufferSize: t.Count, Concurrency: t.Readers, RedisClient: redis7.NewClient(o),
	})
	if err != nil {
		return nil, err
	}
	m := newMeter(t.Events)
	m.skip = int64(t.Count)
	for _, log := range t.logs() {
		c.Register(log, func(*redisqueue.Message) error {
			m.add(1)
			return nil
		})
	}
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		for err := range c.Errors {
			fail(err)
		}
	}()
	go c.Run() // to the end of the process
	if err := m.wait(running); err != nil {
		return nil, err
	}
	result := m.result()
	c.Shutdown()
	for _, log := range t.logs() {
		if err := rdb.XGroupDestroy(ctx, log, t.Run).Err(); err != nil {
			return nil, err
		}
	}
	return result, nil
}
