package stats

import (
	"math"
	"testing"
)

// The ranks stand in tables of the sign test.
func TestRanksOfTheInterval(t *testing.T) {
	tests := []struct {
		n, k     int
		coverage float64
	}{
		{1, 1, 0},
		{2, 1, 0.5},
		{5, 1, 0.9375},
		{6, 1, 0.96875},
		{8, 1, 0.9921875},
		{9, 2, 0.9609375},
		{10, 2, 0.978515625},
		{12, 3, 0.9614},
		{15, 4, 0.9648},
		{20, 6, 0.9586},
		{25, 8, 0.9567},
		{30, 10, 0.9572},
	}
	for _, tt := range tests {
		k, coverage := Rank(tt.n)
		if k != tt.k || math.Abs(coverage-tt.coverage) > 0.0001 {
			t.Errorf("Rank(%d): got %d and %.4f, want %d and %.4f", tt.n, k, coverage, tt.k, tt.coverage)
		}
	}
}

func TestSum(t *testing.T) {
	fifteen := []float64{15, 1, 14, 2, 13, 3, 12, 4, 11, 5, 10, 6, 9, 7, 8}
	got := Sum(fifteen)
	want := Summary{N: 15, Median: 8, Min: 1, Max: 15, Low: 4, High: 12, Coverage: got.Coverage}
	if got != want || !got.Known() {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if fifteen[0] != 15 {
		t.Error("the values were sorted in place")
	}
	if got := Sum([]float64{4, 1}); got.Median != 2.5 || got.Low != 1 || got.High != 4 || got.Known() {
		t.Errorf("of two values: got %+v", got)
	}
	if got := Sum(nil); got != (Summary{}) {
		t.Errorf("of nothing: got %+v", got)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	tests := []struct{ q, want float64 }{{0, 1}, {0.5, 5}, {0.9, 9}, {0.99, 10}, {1, 10}}
	for _, tt := range tests {
		if got := Quantile(v, tt.q); got != tt.want {
			t.Errorf("Quantile(%v): got %v, want %v", tt.q, got, tt.want)
		}
	}
	if !math.IsNaN(Quantile(nil, 0.5)) || !math.IsNaN(Median(nil)) {
		t.Error("nothing has a quantile")
	}
}

func TestVerdicts(t *testing.T) {
	least, most := Bar{At: 0.8}, Bar{At: 0.8, AtMost: true}
	of := func(low, median, high float64) Summary {
		return Summary{N: 15, Low: low, Median: median, High: high, Coverage: 0.96}
	}
	few := of(0.5, 0.6, 0.7)
	few.Coverage = 0.5
	tests := []struct {
		name string
		bar  Bar
		s    Summary
		want Verdict
	}{
		{"above", least, of(0.9, 0.95, 1), Held},
		{"median at the bar", least, of(0.7, 0.8, 0.9), Held},
		{"median below, interval reaches it", least, of(0.7, 0.75, 0.8), Open},
		{"interval ends below", least, of(0.7, 0.75, 0.79), Missed},
		{"too few to tell", least, few, Open},
		{"nothing", least, Summary{}, Open},
		{"below an upper bound", most, of(0.5, 0.6, 0.9), Held},
		{"upper bound, interval reaches it", most, of(0.8, 0.9, 1), Open},
		{"interval begins above", most, of(0.81, 0.9, 1), Missed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.bar.Judge(tt.s); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
