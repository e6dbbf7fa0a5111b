// Telemetry keeps the mean of the readings of each device. The means survive crashes: each is a
// hash in Redis that also holds the ID of the event that changed it last, so that an event that
// is processed again changes nothing.
//
//	REDIS_ADDR=127.0.0.1:6379 go run ./examples/telemetry worker    # needs a redis-server
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Reading struct {
	Device string  `json:"device"`
	Value  float64 `json:"value"`
}

// errLost is what a write of a former owner gets.
var errLost = errors.New("another worker has taken the device over")

// addScript counts a reading, unless it is counted already.
//
// KEYS[1] hash of the device
// ARGV    value, the two numbers of the event's ID, epoch
// Returns number and sum of the readings; -1 where a later owner has written
var addScript = redis.NewScript(`
local value, ms, seq, epoch = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local last = redis.call('HMGET', KEYS[1], 'ms', 'seq', 'epoch')
local lastMS, lastSeq, lastEpoch = tonumber(last[1] or 0), tonumber(last[2] or 0), tonumber(last[3] or 0)
if lastEpoch > epoch then
	return {'-1', '0'}
end
if ms > lastMS or ms == lastMS and seq > lastSeq then
	redis.call('HINCRBY', KEYS[1], 'n', 1)
	redis.call('HINCRBYFLOAT', KEYS[1], 'sum', value)
	redis.call('HSET', KEYS[1], 'ms', ms, 'seq', seq, 'epoch', epoch)
end
return redis.call('HMGET', KEYS[1], 'n', 'sum')
`)

// means are the means of all devices.
type means struct{ rdb redis.UniversalClient }

// add counts a reading once, however often its event is processed, and returns the mean.
func (m means) add(ctx context.Context, e *runnel.Event, r Reading) (float64, error) {
	ms, seq, _ := strings.Cut(e.ID, "-")
	reply, err := addScript.Run(ctx, m.rdb, []string{"mean:" + r.Device}, r.Value, ms, seq, e.Epoch).Float64Slice()
	if err != nil {
		return 0, fmt.Errorf("mean of device %s: %w", r.Device, err)
	}
	n, sum := reply[0], reply[1]
	if n < 0 {
		return 0, fmt.Errorf("mean of device %s: %w", r.Device, errLost)
	}
	return sum / n, nil
}

// register adds the stream of readings to app, and the processor that calls add for each.
func register(app *runnel.App, add func(context.Context, *runnel.Event, Reading) (float64, error)) *runnel.Stream[Reading] {
	readings := runnel.NewStream(app, "readings", func(r Reading) string { return r.Device }, nil)
	readings.Process("mean", func(owned context.Context, events *runnel.Events[Reading]) error {
		for event, reading := range events.All() {
			mean, err := add(events.Context(), event, reading)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %.2f on average\n", reading.Device, mean)
		}
		return nil
	}, &runnel.ProcessorOptions{Lease: 5 * time.Second, Retry: &runnel.Retry{Max: 5}})
	return readings
}

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: cmp.Or(os.Getenv("REDIS_ADDR"), "127.0.0.1:6379")})
	defer rdb.Close() // the app does not close what it was given
	app := runnel.New("plant", &runnel.Options{Redis: rdb})
	readings := register(app, means{rdb}.add)
	app.Every("devices", time.Second, func(ctx context.Context) error {
		return readings.Send(ctx, Reading{"boiler", 90 + rand.Float64()}, Reading{"fridge", 4 + rand.Float64()})
	}, nil)
	cli.Run(app)
}
