// Package stats sums up repeated measurements without assuming how they are distributed.
//
// The interval of a median is made of order statistics: of n values in order, x(k) to x(n+1-k)
// contains the true median unless fewer than k of them lie on one side of it. How many lie there
// has the binomial distribution with n and 1/2, so the interval covers the median with 1 - 2·P(B <
// k). Interval takes the largest k for which that is at least 95 %: with 15 values k is 4, x(4) to
// x(12), which is 96.5 %; below 6 values there is none.
package stats

import (
	"math"
	"slices"
)

// Coverage is the least coverage of an interval.
const Coverage = 0.95

// A Summary is a series of values in brief. It is the zero value for none.
type Summary struct {
	N        int     `json:"n"`
	Median   float64 `json:"median"`
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Low      float64 `json:"low"`      // of the interval of the median
	High     float64 `json:"high"`     // of the interval of the median
	Coverage float64 `json:"coverage"` // of the interval; below 0.95 the values are too few, and it is Min to Max
}

// Sum returns the summary of values, which it does not change.
func Sum(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	v := slices.Sorted(slices.Values(values))
	s := Summary{N: len(v), Median: middle(v), Min: v[0], Max: v[len(v)-1]}
	k, coverage := Rank(len(v))
	s.Low, s.High, s.Coverage = v[k-1], v[len(v)-k], coverage
	return s
}

// Known reports whether the interval has its 95 %.
func (s Summary) Known() bool { return s.Coverage >= Coverage }

// Rank returns the k of the interval x(k) to x(n+1-k) for n values, at least 1, and
// how likely that contains the median.
func Rank(n int) (k int, coverage float64) {
	below := math.Pow(0.5, float64(n)) // P(B = 0), then P(B < k)
	term := below
	k, coverage = 1, 1-2*below
	for i := 1; 2*(i+1) <= n+1; i++ {
		term *= float64(n-i+1) / float64(i) // P(B = i)
		below += term
		if 1-2*below < Coverage {
			break
		}
		k, coverage = i+1, 1-2*below
	}
	return k, max(coverage, 0)
}

// Quantile returns the smallest of the ordered values that a share of at least q does not exceed.
// Without values it is NaN.
func Quantile(ordered []float64, q float64) float64 {
	if len(ordered) == 0 {
		return math.NaN()
	}
	i := int(math.Ceil(q*float64(len(ordered)))) - 1
	return ordered[min(max(i, 0), len(ordered)-1)]
}

// Median returns the middle of values, or the mean of the two in the middle.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return middle(slices.Sorted(slices.Values(values)))
}

func middle(ordered []float64) float64 {
	n := len(ordered)
	if n%2 == 1 {
		return ordered[n/2]
	}
	return (ordered[n/2-1] + ordered[n/2]) / 2
}
