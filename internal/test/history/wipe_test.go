package history

import "testing"

func wiped(last int) Record { return event(Wiped, last).only() }

func rest(last int, epoch int64) Record {
	r := event(Rest, last).only()
	r.Processor, r.Epoch = "printer", epoch
	return r
}

// only keeps nothing but the IDs of an event.
func (r Record) only() Record {
	r.Keys, r.Seqs = nil, nil
	return r
}

func owned(executor string, epoch int64, owners int) Record {
	r := place0(Owned, 0)
	r.Executor, r.Epoch, r.Count = executor, epoch, owners
	return r
}

func delayed(n int, dueMS int64) Record {
	r := event(Delayed, n)
	r.IDs, r.Due = nil, dueMS
	return r
}

func recalled(n int, perhaps bool) Record {
	r := event(Recalled, n)
	r.IDs, r.Failed = nil, perhaps
	return r
}

// wipeOut is a wipe that took everything up to an event.
func wipeOut(last int) []Record { return []Record{fault("", Wipe), wiped(last)} }

// seen are histories with wipes, rests, delays and looks at owners, and what is wrong with each.
var seen = []struct {
	name  string
	parts []any
	want  Class
}{
	{"taken by a wipe", []any{sent(1), sent(2), run("w", 1, 1), wipeOut(2), sent(3), run("x", 2, 3)}, ""},
	{"sent after a wipe, at once", []any{sent(1), run("w", 1, 1), wipeOut(1), sent(2)}, ClassLoss},
	{"behind what a wipe took", []any{sent(1), sent(2), wipeOut(1), run("w", 1, 1)}, ClassLoss},
	{"another partition was wiped", []any{sent(1), sent(2), fault("", Wipe), func() Record {
		r := wiped(2)
		r.Partition = 1
		return r
	}(), run("w", 1, 1)}, ClassLoss},
	{"an old owner goes on with what was taken", []any{sent(1), sent(2), run("w", 1, 1), wipeOut(2), sent(3), run("x", 2, 3), run("w", 1, 2)}, ""},
	{"an old owner goes on with it for long", []any{sent(1), sent(2), run("w", 1, 1), wipeOut(2), sent(3), run("x", 2, 3), pause(), run("w", 1, 2)}, ClassOwner},
	{"an old owner goes on with something else", []any{sent(1), sent(2), run("w", 1, 1), wipeOut(1), sent(3), run("x", 2, 2, 3), run("w", 1, 2)}, ClassOwner},
	{"sent again after a wipe", []any{sent(1), run("w", 1, 1), wipeOut(1), under("4-0", sent(1)),
		under("4-0", begin("x", 2, 1)), under("4-0", end("x", 2, 1))}, ""},
	{"there twice after a wipe", []any{sent(2), run("w", 1, 2), wipeOut(2), under("4-0", sent(1)), under("5-0", sent(1)),
		under("4-0", begin("x", 2, 1)), under("4-0", end("x", 2, 1)), under("5-0", begin("x", 2, 1)), under("5-0", end("x", 2, 1))}, ClassResend},
	{"what was begun and taken holds nothing up", []any{sent(2), begin("w", 1, 2), failed("w", 1, 2), wipeOut(2), sent(4), run("x", 2, 4)}, ""},

	{"one owner after the other", []any{owned("x", 1, 1), owned("x", 1, 1), owned("y", 2, 1)}, ""},
	{"nobody for a while", []any{owned("x", 3, 1), owned("", 0, 0), owned("y", 4, 1)}, ""},
	{"two accepted owners", []any{owned("x", 1, 2)}, ClassOwner},
	{"an epoch twice", []any{owned("x", 1, 1), owned("y", 1, 1)}, ClassOwner},
	{"an epoch that falls", []any{owned("x", 2, 1), owned("y", 1, 1)}, ClassOwner},
	{"an epoch that falls over a wipe", []any{owned("x", 2, 1), fault("", Wipe), wiped(1), owned("", 0, 0), owned("y", 1, 1)}, ClassOwner},

	{"after a rest", []any{rest(1, 4), sent(2), run("w", 5, 2)}, ""},
	{"what was done at a rest", []any{rest(2, 4), sent(3), run("w", 5, 2, 3)}, ClassRepeat},
	{"an epoch from before a rest", []any{rest(1, 4), sent(2), run("w", 3, 2)}, ClassOwner},

	{"delayed, and came", []any{delayed(1, 1), event(Appended, 1), run("w", 1, 1)}, ""},
	{"delayed, and came early", []any{delayed(1, 2), event(Appended, 1), run("w", 1, 1)}, ClassEarly},
	{"delayed, and never came", []any{delayed(1, 1)}, ClassLoss},
	{"delayed, and came twice", []any{delayed(1, 1), event(Appended, 1), under("2-0", event(Appended, 1)), run("w", 1, 1),
		under("2-0", begin("w", 1, 1)), under("2-0", end("w", 1, 1))}, ClassResend},
	{"recalled", []any{delayed(1, 1), recalled(1, false)}, ""},
	{"recalled, and came", []any{delayed(1, 1), recalled(1, false), event(Appended, 1), run("w", 1, 1)}, ClassEarly},
	{"recalled, perhaps", []any{delayed(1, 1), recalled(1, true), event(Appended, 1), run("w", 1, 1)}, ""},
	{"recalled, never delayed", []any{recalled(1, false)}, ClassRecord},
	{"delayed, and wiped", []any{delayed(1, 1), fault("", Wipe), wiped(4)}, ""},
	{"delayed, and wiped long after it came and a failover", []any{delayed(1, 1), event(Appended, 1), fault("", Failover), pause(), fault("", Wipe), wiped(9000)}, ""},
	{"delayed after a wipe", []any{fault("", Wipe), wiped(4), delayed(1, 1)}, ClassLoss},

	{"out of the server's reach", []any{sent(1), run("w", 1, 1), fault("", Down), run("x", 2, 1)}, ""},
	{"in silence", []any{sent(1), run("w", 1, 1), fault("w", Silence), run("x", 2, 1)}, ""},
	{"slow is no excuse", []any{sent(1), run("w", 1, 1), fault("w", Slow), run("x", 2, 1)}, ClassRepeat},
	{"a step of the clock is no excuse", []any{sent(1), run("w", 1, 1), fault("w", Clock), run("x", 2, 1)}, ClassRepeat},
	{"lost scripts are no excuse", []any{sent(1), run("w", 1, 1), fault("", Scripts), run("x", 2, 1)}, ClassRepeat},
}

func TestWipesRestsDelaysAndOwners(t *testing.T) {
	for _, tt := range seen {
		t.Run(tt.name, func(t *testing.T) {
			r := Check(history(tt.parts...), Options{Processors: []string{"printer"}, Lanes: LaneKey})
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
