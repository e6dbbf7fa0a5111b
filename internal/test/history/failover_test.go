package history

import "testing"

func appended(n int) Record { return event(Appended, n) }

// failover is one that lasts, for a minute with what is pause between.
func failover(between ...any) []any {
	return append(append([]any{fault("", Failover)}, between...), fault("", Settled))
}

// twice is a first event, a failover, and the second one under another ID.
func twice(first, second Record) []any {
	return []any{first, fault("", Failover), under("4-0", second), under("4-0", begin("w", 1, 1)), under("4-0", end("w", 1, 1))}
}

var failovers = []struct {
	name  string
	parts []any
	want  Class
}{
	{"gone, and nobody was told", []any{appended(1), fault("", Failover), sent(3), run("w", 1, 3)}, ""},
	{"gone, and nobody was told, while it lasts", append(failover(pause(), appended(1), pause()), sent(3), run("w", 1, 3)), ""},
	{"gone, and its sender was told", []any{appended(1), sent(1), fault("", Failover), sent(3), run("w", 1, 3)}, ClassLoss},
	{"gone long before", []any{appended(1), pause(), fault("", Failover), sent(3), run("w", 1, 3)}, ClassLoss},
	{"gone long after", append(failover(), pause(), appended(1), sent(3), run("w", 1, 3)), ClassLoss},
	{"gone without a failover", []any{appended(1), fault("", Down), sent(3), run("w", 1, 3)}, ClassLoss},
	{"sent again after it", twice(appended(1), sent(1)), ""},
	{"sent again after it, and the first one is in", append(twice(sent(1), sent(1)), run("w", 1, 1)), ClassResend},
	{"sent again without it", []any{appended(1), under("4-0", sent(1)), run("w", 1, 1), under("4-0", begin("w", 1, 1)), under("4-0", end("w", 1, 1))}, ClassResend},
	{"it holds nothing up", []any{appended(2), begin("w", 1, 2), failed("w", 1, 2), fault("", Failover), sent(4), run("w", 1, 4)}, ""},
	{"what was told holds up", []any{sent(2), begin("w", 1, 2), failed("w", 1, 2), fault("", Failover), sent(4), run("w", 1, 4)}, ClassOrder},

	{"an accepted owner is undone", []any{owned("x", 2, 1), fault("", Failover), owned("y", 1, 1)}, ""},
	{"gone in a split, and all had to know", []any{fault("", Split), sent(1), sent(3), run("w", 1, 3), fault("", Settled)}, ClassLoss},
	{"its epoch is given to another one", []any{owned("x", 2, 1), fault("", Failover), owned("y", 2, 1)}, ""},
	{"though something began under it", []any{sent(1), sent(3), owned("xw", 2, 1), run("w", 2, 1), fault("", Failover), owned("xy", 1, 1), run("y", 1, 3)}, ClassOwner},
	{"an old owner beside the next one", []any{sent(1), sent(2), run("w", 1, 1), fault("", Split), run("y", 2, 1, 2), run("w", 1, 2), fault("", Settled)}, ""},
	{"an old owner beside the next one, and one server", []any{sent(1), sent(2), run("w", 1, 1), fault("", Failover), run("y", 2, 1, 2), run("w", 1, 2)}, ClassOwner},
	{"an old owner long after", []any{sent(1), sent(2), run("w", 1, 1), fault("", Split), run("y", 2, 1, 2), fault("", Settled), pause(), run("w", 1, 2)}, ClassOwner},
	{"two owners, one after the other, and it is lost", []any{sent(1), sent(2), run("w", 1, 1), fault("", Split), run("w", 1, 1)}, ClassRepeat},
	{"what is gone may be late", []any{sent(3), appended(1), fault("", Split), run("y", 2, 3), run("w", 1, 1)}, ""},
	{"what is in may not", []any{sent(3), sent(1), fault("", Split), run("y", 2, 3), run("w", 1, 1)}, ClassOrder},
	{"two accepted owners", []any{fault("", Failover), owned("x", 1, 2)}, ClassOwner},

	{"a hold is undone", []any{sent(1), place0(Held, 0), fault("", Failover), run("w", 1, 1), place0(Freed, 0)}, ""},
	{"a hold after it", append(failover(), pause(), sent(1), place0(Held, 0), run("w", 1, 1), place0(Freed, 0)), ClassHold},
	{"a recall is undone", []any{delayed(1, 1), recalled(1, false), fault("", Failover), appended(1), run("w", 1, 1)}, ""},
	{"a recall after it", append(failover(), pause(), delayed(1, 1), recalled(1, false), appended(1), run("w", 1, 1)), ClassEarly},
	{"delayed, and gone with it", []any{delayed(1, 1), fault("", Failover)}, ClassLoss},
	{"moved to its partition again", append([]any{delayed(1, 1)}, twice(appended(1), appended(1))...), ""},
	{"a dead letter is gone, and then all is", append([]any{sent(2), sent(4)}, append(failover(begin("w", 1, 2), failed("w", 1, 2), run("w", 1, 4)), wipeOut(4))...), ""},
	{"a dead letter is gone, and nothing else", append([]any{sent(2), sent(4)}, failover(begin("w", 1, 2), failed("w", 1, 2), run("w", 1, 4))...), ClassOrder},
	{"a dead letter again", []any{sent(1), dead(1), fault("", Failover), dead(1)}, ""},
	{"a dead letter twice after it", append(failover(), pause(), sent(1), dead(1), dead(1)), ClassRepeat},
	{"attempts are forgotten", []any{sent(1), attempted(2, []Record{begin("w", 1, 1), failed("w", 1, 1)}), fault("", Failover), attempted(1, run("y", 2, 1))}, ""},
	{"settled is over", append(failover(), pause(), sent(1), attempted(2, []Record{begin("w", 1, 1), failed("w", 1, 1)}), attempted(1, run("w", 1, 1))), ClassAttempts},
}

// Unreplicated state may be gone after a failover, but only if no sender was told that it is in.
func TestFailovers(t *testing.T) {
	for _, tt := range failovers {
		t.Run(tt.name, func(t *testing.T) { judged(t, tt.parts, Options{Lanes: LaneKey}, tt.want) })
	}
	for _, tt := range wider {
		t.Run(tt.name, func(t *testing.T) { judged(t, tt.parts, Options{Lanes: LaneKey}, tt.want) })
	}
	some := []struct {
		name  string
		parts []any
		want  Class
	}{
		{"gone in a split, and its sender was told", []any{fault("", Split), sent(1), delayed(2, 1), sent(3), run("w", 1, 3), fault("", Settled)}, ""},
		{"gone before a split", []any{sent(1), fault("", Split), sent(3), run("w", 1, 3)}, ClassLoss},
		{"gone in a failover, and its sender was told", []any{fault("", Failover), sent(1), sent(3), run("w", 1, 3), fault("", Settled)}, ClassLoss},
	}
	for _, tt := range some {
		t.Run(tt.name, func(t *testing.T) { judged(t, tt.parts, Options{Lanes: LaneKey, Some: true}, tt.want) })
	}
}

// wider are excuses that would be too wide.
var wider = []struct {
	name  string
	parts []any
	want  Class
}{
	{"between two failovers of one name", append(append(failover(), pause(), sent(1), dead(1), dead(1), pause()), failover()...), ClassRepeat},
	{"between two splits of one name", []any{
		fault("", Split), fault("", Settled), pause(), sent(1), sent(2), run("w", 1, 1), run("y", 2, 1, 2), run("w", 1, 2), pause(), fault("", Split), fault("", Settled),
	}, ClassOwner},
	{"a dead letter again, long before and after", append(append([]any{sent(1), dead(1), pause()}, failover()...), pause(), dead(1)), ClassRepeat},
	{"an owner undone, long before and after", append(append([]any{owned("x", 2, 1), pause()}, failover()...), pause(), owned("y", 1, 1)), ClassOwner},
	{"a failover that came to none", append(undone(failover(appended(1))), sent(3), run("w", 1, 3)), ClassLoss},
	{"it is found afterwards, and twice", append(failover(appended(1)), appended(1), under("4-0", sent(1)), run("w", 1, 1),
		under("4-0", begin("w", 1, 1)), under("4-0", end("w", 1, 1))), ClassResend},
	{"it is done long afterwards, and twice", append(failover(appended(1)), pause(), under("4-0", sent(1)), run("w", 1, 1),
		under("4-0", begin("w", 1, 1)), under("4-0", end("w", 1, 1))), ClassResend},
	{"gone with the second of two", append(failover(), append(failover(appended(1)), under("4-0", sent(1)), under("4-0", begin("w", 1, 1)), under("4-0", end("w", 1, 1)))...), ""},
	{"delayed, moved, and gone", []any{delayed(1, 1), appended(1), fault("", Failover)}, ClassLoss},
	{"delayed, moved, done, and gone", []any{delayed(1, 1), appended(1), run("w", 1, 1), fault("", Failover)}, ""},
	{"delayed, and another partition is wiped", []any{delayed(1, 1), fault("", Wipe), func() Record {
		r := wiped(4)
		r.Partition = 1
		return r
	}()}, ClassLoss},
	{"delayed, due while servers suffer, and wiped", []any{delayed(1, 1), fault("", Down), fault("", Wipe), wiped(9000)}, ""},
	{"an ID twice, of two masters", []any{fault("", Split), sent(1), under("1-0", sent(3)), fault("", Settled), run("w", 1, 1)}, ""},
	{"an ID twice, of one", []any{fault("", Failover), sent(1), under("1-0", sent(3)), fault("", Settled), run("w", 1, 1)}, ClassRecord},
	{"delayed, due, and wiped long after", []any{delayed(1, 1), fault("", Wipe), wiped(9000)}, ClassLoss},
}

// undone is a failover that replaced no server.
func undone(parts []any) []any {
	last := parts[len(parts)-1].(Record)
	last.Failed = true
	return append(parts[:len(parts)-1], last)
}

// judged checks which class of violations a history has, "" for none.
func judged(t *testing.T, parts []any, opts Options, want Class) {
	t.Helper()
	opts.Processors = []string{"printer"}
	r := Check(history(parts...), opts)
	found := want == "" && r.OK
	for _, v := range r.Violations {
		found = found || v.Class == want
	}
	if !found {
		t.Errorf("want %q, got %s", want, r)
	}
}
