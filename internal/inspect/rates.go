package inspect

import (
	"slices"
	"time"
)

// StreamRates are the events per second appended to a stream between two looks.
type StreamRates struct {
	Stream     string           `json:"stream"`
	Appended   *float64         `json:"appended"` // nil: unknown
	Processors []ProcessorRates `json:"processors"`
}

// ProcessorRates are the events per second that a processor finished between two looks: acked,
// parked, dead-lettered, or removed from Redis.
type ProcessorRates struct {
	Processor  string     `json:"processor"`
	Done       *float64   `json:"done"`       // nil: unknown of a partition
	Partitions []*float64 `json:"partitions"` // nil: unknown
}

// ratesOf compares two looks. A rate is unknown without a previous look, if a value could not be
// read or counted, or if a position was moved back meanwhile.
func ratesOf(before, now *AppState) []StreamRates {
	out := make([]StreamRates, len(now.Streams))
	for i := range now.Streams {
		s := &now.Streams[i]
		var was *StreamState
		var took time.Duration
		if before != nil {
			took = now.At.Sub(before.At)
			if j := slices.IndexFunc(before.Streams, func(b StreamState) bool { return b.Stream == s.Stream }); j >= 0 {
				was = &before.Streams[j]
			}
		}
		out[i] = streamRates(was, s, took)
	}
	return out
}

func streamRates(was, now *StreamState, took time.Duration) StreamRates {
	r := StreamRates{Stream: now.Stream, Processors: make([]ProcessorRates, len(now.Processors))}
	if was != nil && was.Appended >= 0 && now.Appended >= 0 {
		r.Appended = perSecond(now.Appended-was.Appended, took)
	}
	for i := range now.Processors {
		p := &now.Processors[i]
		var before *ProcessorState
		if was != nil {
			if j := slices.IndexFunc(was.Processors, func(b ProcessorState) bool { return b.Processor == p.Processor }); j >= 0 {
				before = &was.Processors[j]
			}
		}
		r.Processors[i] = processorRates(before, p, took)
	}
	return r
}

func processorRates(was, now *ProcessorState, took time.Duration) ProcessorRates {
	r := ProcessorRates{Processor: now.Processor, Partitions: make([]*float64, len(now.Partitions))}
	if was == nil || len(was.Partitions) != len(now.Partitions) {
		return r
	}
	sum, known := int64(0), true
	for n := range now.Partitions {
		before, okBefore := done(&was.Partitions[n])
		after, ok := done(&now.Partitions[n])
		if !ok || !okBefore || after < before {
			known = false
			continue
		}
		sum += after - before
		r.Partitions[n] = perSecond(after-before, took)
	}
	if known {
		r.Done = perSecond(sum, took)
	}
	return r
}

// done returns how many of the events ever appended are finished.
func done(p *PartitionState) (int64, bool) {
	return p.Appended - p.Lag, p.Err == "" && p.Appended >= 0 && !p.LagMore
}

// perSecond returns nil if the clock was set back, or the stream was removed and began anew.
func perSecond(n int64, took time.Duration) *float64 {
	if n < 0 || took <= 0 {
		return nil
	}
	rate := float64(n) / took.Seconds()
	return &rate
}
