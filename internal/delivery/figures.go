package delivery

import "math"

// Figures are the events of a subscriber by what became of them.
type Figures struct {
	Sent, Queued, Dropped, Dead int64
	Failed                      int64 // attempts
}

// An Extent is what a log has: its first entry with a number, zero if it is empty, and the last ID that it has ever given.
type Extent struct{ First, Last ID }

// Figures returns what became of a subscriber's events, by settings and logs that were looked at after the state was
// read. As long as no span was replaced or removed and no log set back, the first four are together, exactly,
//
//	Σ min(last number, end) − start
//
// Members of the open batch are queued until it is decided. What a log has lost at its beginning is dropped at once, what it
// has lost in the middle when the position passes it. Dropped falls in two cases: a failover brought
// entries back; or the owner had loaded events that then were lost, and has sent them all the same. State.Dropped,
// which counts up to the positions, never falls.
func (s *State) Figures(spans map[string]Span, logs map[string]Extent) Figures {
	f := Figures{Sent: s.Sent, Dropped: s.Dropped, Dead: s.Dead, Failed: s.Failed}
	for log, span := range spans {
		if at, ok := s.begins(log, span); ok {
			end := max(at.N, span.End)
			if span.End == 0 {
				end = math.MaxInt64
			}
			f.add(at.N, end, logs[log], s.members(log))
		}
	}
	for log, at := range s.Settled {
		if _, named := spans[log]; !named {
			f.add(at.N, at.N, logs[log], s.members(log))
		}
	}
	return f
}

// Positions returns behind which ID each log that the settings name is delivered, without those that have come to their end.
func (s *State) Positions(spans map[string]Span) map[string]ID {
	all := map[string]ID{}
	for log, span := range spans {
		if at, ok := s.begins(log, span); ok {
			all[log] = at
		}
	}
	return all
}

// add adds what lies behind a position.
func (f *Figures) add(at, end int64, log Extent, members Runs) {
	removed := log.First.N - 1
	if log.First == (ID{}) {
		removed = log.Last.N
	}
	removed = min(removed, end)
	dropped := max(0, removed-at) - members.count(at+1, max(at, removed))
	f.Dropped += dropped
	f.Queued += max(at, min(log.Last.N, end), members.last()) - at - dropped
}
