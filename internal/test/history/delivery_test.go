package history

import "testing"

func place0(kind Kind, partition int) Record {
	return Record{Kind: kind, Processor: "printer", Partition: partition}
}

func attempted(n int, r []Record) []Record {
	r[0].Attempts = []int{n}
	return r
}

func lost(n int) Record {
	r := place0(Dropped, 0)
	r.Count = n
	return r
}

func due(ms int64, r Record) Record {
	r.Due = ms
	return r
}

func TestDelivery(t *testing.T) {
	const most = 3
	again := func(n, attempt int) []Record {
		return attempted(attempt, []Record{begin("w", 1, n), failed("w", 1, n)})
	}
	tests := []struct {
		name  string
		parts []any
		want  Class
	}{
		{"begun while held", []any{sent(1), place0(Held, 0), run("w", 1, 1), place0(Freed, 0)}, ClassHold},
		{"begun while all are held", []any{sent(1), place0(Held, -1), run("w", 1, 1)}, ClassHold},
		{"held twice, freed once", []any{sent(1), place0(Held, 0), place0(Held, -1), place0(Freed, 0), run("w", 1, 1)}, ClassHold},
		{"stopped, continued long before", []any{sent(1), fault("w", Stop), place0(Held, 0), fault("w", Cont), pause(), run("w", 1, 1)}, ClassHold},
		{"freed and not held", []any{place0(Freed, 0)}, ClassRecord},
		{"before and after", []any{sent(1), sent(2), run("w", 1, 1), place0(Held, 0), place0(Freed, 0), run("w", 1, 2)}, ""},
		{"ends while held", []any{sent(1), begin("w", 1, 1), place0(Held, 0), end("w", 1, 1)}, ""},
		{"another partition is held", []any{sent(1), place0(Held, 1), run("w", 1, 1)}, ""},
		{"begun before a stop, written after it", []any{sent(1), fault("w", Stop), place0(Held, 0), fault("w", Cont), run("w", 1, 1)}, ""},

		{"early", []any{due(2, event(Appended, 1)), run("w", 1, 1)}, ClassEarly},
		{"in time", []any{due(1, event(Appended, 1)), run("w", 1, 1)}, ""},

		{"too many attempts", []any{sent(1), again(1, 1), again(1, 2), again(1, 3), again(1, 4), dead(1)}, ClassAttempts},
		{"an attempt twice", []any{sent(1), again(1, 1), again(1, 1), dead(1)}, ClassAttempts},
		{"attempts go back", []any{sent(1), again(1, 1), again(1, 2), again(1, 1), dead(1)}, ClassAttempts},
		{"as many as there may be", []any{sent(1), again(1, 1), again(1, 2), again(1, 3), dead(1)}, ""},
		{"an attempt twice, cut off", []any{sent(1), again(1, 1), fault("w", Cut), again(1, 1), dead(1)}, ""},
		{"an attempt twice, by two owners", []any{sent(1), again(1, 1), fault("w", Kill), attempted(1, run("v", 2, 1))}, ""},

		{"more are missing than were dropped", []any{sent(1), sent(2), sent(3), lost(1), run("w", 1, 3)}, ClassLoss},
		{"as many are missing", []any{sent(1), sent(2), sent(3), lost(2), run("w", 1, 3)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Check(history(tt.parts...), Options{Processors: []string{"printer"}, Lanes: LaneKey, Attempts: most})
			found := tt.want == "" && r.OK
			for _, v := range r.Violations {
				found = found || v.Class == tt.want
			}
			if !found {
				t.Errorf("want %q, got %s", tt.want, r)
			}
		})
	}
}
