//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
)

// sendEvery is how often a producer sends a batch: workers under the race detector keep up with it.
const sendEvery = 60 * time.Millisecond

// produce sends until stop is called.
func (s *scene) produce() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	for n := range producers {
		log := s.open(fmt.Sprint("producer", n))
		wg.Go(func() { s.send(ctx, log, n) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// send sends batches over keys of its own. Failed records are sent again, in order, before any
// later one, so that order per key is the producer's order.
func (s *scene) send(ctx context.Context, log *history.Log, n int) {
	_, jobs, end := declare(s.sends.way, fmt.Sprint("producer", n))
	defer end()
	seqs := map[string]int64{}
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	if s.delivery != nil {
		s.delivery.producers.Go(func() { s.delivery.delay(ctx, log, jobs, n) })
		defer s.delivery.producers.Wait()
	}
	for ctx.Err() == nil {
		var batch []job
		for range batchSize {
			key := fmt.Sprintf("p%d-%d-%d", s.round, n, rng.IntN(keysEach))
			seqs[key]++
			batch = append(batch, job{key, seqs[key]})
		}
		for len(batch) > 0 && s.t.Context().Err() == nil {
			batch = s.sendOnce(log, jobs, batch)
		}
		<-time.After(sendEvery)
	}
}

// sendOnce sends a batch and returns the records to send again.
func (s *scene) sendOnce(log *history.Log, jobs *runnel.Stream[job], batch []job) (again []job) {
	out := make([]runnel.Outgoing[job], len(batch))
	for i, j := range batch {
		out[i].Record = j
		if s.delivery != nil {
			out[i].DedupID = fmt.Sprint(j.Key, "/", j.Seq) // what is sent again is not appended again
		}
	}
	sent, err := jobs.SendEvents(context.WithoutCancel(s.t.Context()), out...)
	var se *runnel.SendError
	if err != nil && !errors.As(err, &se) {
		<-time.After(50 * time.Millisecond) // the metadata could not be checked: nothing was sent
		return batch
	}
	failed := map[int]runnel.SendFailure{}
	if se != nil {
		for _, f := range se.Failed {
			failed[f.Index] = f
		}
	}
	for i, j := range batch {
		f, bad := failed[i]
		switch {
		case !bad:
			err = log.Sent("jobs", sent[i].Partition, sent[i].ID, j.Key, j.Seq)
		case f.Unknown && s.delivery == nil:
			err = log.Unknown("jobs", j.Key, j.Seq)
			again = append(again, j)
		default:
			again, err = append(again, j), nil
		}
		if err != nil {
			s.t.Error(err)
		}
	}
	return again
}
