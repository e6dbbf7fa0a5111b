package stats

// A Bar is the value that a measurement is compared with.
type Bar struct {
	At     float64 `json:"at"`
	AtMost bool    `json:"at_most,omitempty"` // the value should be below, else above
}

// A Verdict is the side of its bar on which a value is.
type Verdict string

const (
	Held   Verdict = "held"   // the median is on the good side
	Open   Verdict = "open"   // it is not, but the interval is not wholly on the bad side, or not known
	Missed Verdict = "missed" // the whole interval is on the bad side
)

// Judge holds a summary against the bar.
func (b Bar) Judge(s Summary) Verdict {
	switch {
	case s.N == 0:
		return Open
	case b.Good(s.Median):
		return Held
	case s.Known() && !b.Good(s.Low) && !b.Good(s.High):
		return Missed
	}
	return Open
}

// Good reports whether the value is on the good side; the bar itself is.
func (b Bar) Good(value float64) bool {
	if b.AtMost {
		return value <= b.At
	}
	return value >= b.At
}
