package history

import (
	"math"
	"slices"
	"time"
)

// aftermath is how long after a fault its effects may last: by then a dead connection has been
// noticed.
const aftermath = int64(5 * time.Second)

// slack is how late the sending of an event, or its iteration, may be written, compared with a flush that took the
// event away.
const slack = int64(time.Second)

// afterStop is how long after SIGCONT a worker may record what it had begun before SIGSTOP.
const afterStop = int64(100 * time.Millisecond)

// trouble is an unclean fault. Stop lasts until cont, all others are over at once. Lost may be noticed late.
type trouble struct {
	*Record
	from, until int64
	void        bool // of a failover: it came to none
}

// faults are the unclean faults of a history.
type faults struct {
	list []*trouble // in order
}

// learn records the next fault, in the order of time: a clean one may end one before it.
func (s *faults) learn(r *Record) {
	for _, f := range s.list {
		switch {
		case r.Fault == Cont && f.Fault == Stop && f.Worker == r.Worker:
			f.until = min(f.until, r.At)
		case r.Fault == Settled && (f.Fault == Failover || f.Fault == Split) && f.Text == r.Text && f.until == f.At: // not over yet
			f.until, f.void = max(f.until, r.At), r.Failed
		}
	}
	if unclean[r.Fault] {
		f := &trouble{Record: r, from: r.At, until: r.At}
		switch r.Fault {
		case Stop:
			f.until = math.MaxInt64
		case Lost:
			f.from -= aftermath
		}
		s.list = append(s.list, f)
	}
}

// suffered reports whether an unclean fault of a worker falls into the time from..to.
func (s *faults) suffered(worker string, from, to int64) bool {
	return slices.ContainsFunc(s.list, func(f *trouble) bool {
		return f.until >= from && f.from <= to && (f.Worker == "" || f.Worker == worker)
	})
}

// flushed reports whether a flush may have come between what was written at these times.
func (s *faults) flushed(from, to int64) bool {
	return slices.ContainsFunc(s.list, func(f *trouble) bool {
		return f.Fault == Flush && f.At >= from-slack && f.At <= to
	})
}

// resumed reports whether the worker was stopped before one moment and continued right before the
// other: it may have begun without having recorded it.
func (s *faults) resumed(worker string, from, to int64) bool {
	return slices.ContainsFunc(s.list, func(f *trouble) bool {
		return f.Fault == Stop && f.Worker == worker && f.At <= from && f.until >= to-afterStop
	})
}

// failedOver reports whether servers were failing over at a time, right before or soon after it,
// and before to: their unreplicated state is gone.
func (s *faults) failedOver(from, to int64) bool {
	to = min(to, from+aftermath)
	return slices.ContainsFunc(s.list, func(f *trouble) bool { return f.failover(from-slack, to) })
}

// failover reports whether a fault is one, and in this time.
func (f *trouble) failover(from, to int64) bool {
	return (f.Fault == Failover || f.Fault == Split) && !f.void && f.until >= from && f.At <= to
}

// split reports whether two servers were masters at a moment, or right before: an owner whose lock
// the old one still extends does not know the owner that the new one accepts.
func (s *faults) split(at int64) bool {
	return slices.ContainsFunc(s.list, func(f *trouble) bool {
		return f.Fault == Split && !f.void && f.At <= at && at <= f.until+slack
	})
}
