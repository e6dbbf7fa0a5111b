package jobs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	t.Fatalf("no time: %s", text)
	return time.Time{}
}

func timesOf(t *testing.T, trigger *Trigger) *Times {
	t.Helper()
	s, err := TimesOf(trigger)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shown(all []time.Time) (out string) {
	for _, one := range all {
		out += one.Format("02T15:04 ")
	}
	return out
}

func TestNextTimes(t *testing.T) {
	hourly := Trigger{Name: "t", Every: Duration(time.Hour), Start: at(t, "2026-11-10 06:30"), End: at(t, "2026-11-10 09:30"), Offset: Duration(-5 * time.Minute)}
	line := Trigger{Name: "t", Cron: "30 2 * * *", TimeZone: "Europe/Berlin", Start: at(t, "2026-03-28 01:30"), End: at(t, "2026-03-30 00:30")}
	for _, tt := range []struct {
		trigger     *Trigger
		after, want string
	}{
		{&hourly, "1970-01-01", "2026-11-10 06:30"},
		{&hourly, "2026-11-10 06:29", "2026-11-10 06:30"},
		{&hourly, "2026-11-10 06:30", "2026-11-10 07:30"},
		{&hourly, "2026-11-10 08:29", "2026-11-10 08:30"},
		{&hourly, "2026-11-10 08:30", ""},
		{&line, "1970-01-01", "2026-03-28 01:30"},
		{&line, "2026-03-28 01:30", "2026-03-29 01:00"},
		{&line, "2026-03-29 01:00", ""},
	} {
		got := ""
		if next := timesOf(t, tt.trigger).Next(at(t, tt.after)); !next.IsZero() {
			got = next.Format("2006-01-02 15:04")
		}
		if got != tt.want {
			t.Errorf("%+v: behind %s comes %q, want %q", tt.trigger, tt.after, got, tt.want)
		}
	}
	if got := timesOf(t, &hourly).FiresAt(at(t, "2026-11-10 07:30")); !got.Equal(at(t, "2026-11-10 07:25")) {
		t.Errorf("fires at %v", got)
	}
}

func TestPlanOfMissedTimes(t *testing.T) {
	now := at(t, "2026-11-10 10:10")
	for _, tt := range []struct {
		trigger    Trigger
		last, want string
	}{
		{Trigger{}, "2026-11-10 09:00", "10T10:00  missed false omitted 0"},
		{Trigger{}, "2026-11-10 10:00", " missed false omitted 0"},
		{Trigger{}, "2026-11-10 06:00", "10T07:00 10T08:00 10T09:00 10T10:00  missed true omitted 0"},
		{Trigger{CatchUp: CatchUpLatest}, "2026-11-10 06:00", "10T10:00 10T09:00 10T08:00 10T07:00  missed true omitted 0"},
		{Trigger{MaxCatchUp: 3}, "2026-11-10 06:00", "10T08:00 10T09:00 10T10:00  missed true omitted 1"},
		{Trigger{MaxCatchUp: 3}, "2026-11-01 06:00", "10T08:00 10T09:00 10T10:00  missed true omitted 217"},
		{Trigger{CatchUp: CatchUpNone}, "2026-11-10 06:00", " missed false omitted 4"},
		{Trigger{CatchUp: CatchUpNone, Late: Duration(10 * time.Minute)}, "2026-11-10 06:00", "10T10:00  missed false omitted 3"},
		{Trigger{Late: Duration(2 * time.Hour)}, "2026-11-10 06:00", "10T09:00 10T10:00  missed true omitted 2"},
		{Trigger{Late: Duration(time.Minute)}, "2026-11-10 09:00", " missed false omitted 1"},
		{Trigger{Offset: Duration(15 * time.Minute)}, "2026-11-10 07:00", "10T08:00 10T09:00  missed true omitted 0"},
		{Trigger{Offset: Duration(-time.Hour)}, "2026-11-10 09:00", "10T10:00 10T11:00  missed true omitted 0"},
		{Trigger{End: at(t, "2026-11-10 09:00")}, "2026-11-10 06:00", "10T07:00 10T08:00  missed true omitted 0"},
	} {
		tt.trigger.Name = "t"
		for _, line := range []bool{false, true} {
			if tt.trigger.Every, tt.trigger.Cron, tt.trigger.Start = Duration(time.Hour), "", at(t, "2026-01-01"); line {
				tt.trigger.Every, tt.trigger.Cron = 0, "0 * * * *"
			}
			p := timesOf(t, &tt.trigger).Plan(at(t, tt.last), now)
			if got := fmt.Sprintf("%s missed %v omitted %d", shown(p.Times), p.Missed, p.Omitted); got != tt.want {
				t.Errorf("line %v %+v since %s: %s, want %s", line, tt.trigger, tt.last, got, tt.want)
			}
		}
	}
}

// A trigger that nothing has looked at for years is planned at once, and what is left out is counted up to a bound.
func TestPlanOfManyTimes(t *testing.T) {
	now := at(t, "2026-11-10 10:10")
	for _, trigger := range []*Trigger{
		{Name: "t", Every: Duration(time.Millisecond), Start: at(t, "1970-01-01")},
		{Name: "t", Cron: "* * * * *", Start: at(t, "2016-01-01")},
	} {
		p := timesOf(t, trigger).Plan(trigger.Start, now)
		if len(p.Times) != defaultCatchUp || p.Omitted != countedAtMost || !p.Newest.Equal(now) {
			t.Errorf("%d times, %d omitted, newest %v", len(p.Times), p.Omitted, p.Newest)
		}
	}
}

// Plans have each due time once, whatever the trigger: in the plan, or among what is left out.
func TestPlansAgainstAScan(t *testing.T) {
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	lines := []string{"0 * * * *", "30 2 * * *", "*/7 1-5 * * *", "@daily", "0 0 * * 1"}
	for range 2000 {
		tr := &Trigger{
			Name: "t", Start: at(t, "2026-03-01").Add(time.Duration(random.IntN(40*24)) * time.Hour), MaxCatchUp: random.IntN(20),
			CatchUp: []CatchUp{"", CatchUpEarliest, CatchUpLatest, CatchUpRandom}[random.IntN(4)],
			Offset:  Duration(time.Duration(random.IntN(7)-3) * time.Hour),
		}
		if random.IntN(2) == 0 {
			tr.Every = Duration(time.Duration(1+random.IntN(100)) * 17 * time.Minute)
		} else {
			tr.Cron, tr.TimeZone = lines[random.IntN(len(lines))], []string{"", "Europe/Berlin", "Australia/Lord_Howe"}[random.IntN(3)]
		}
		if random.IntN(3) == 0 {
			tr.End = tr.Start.Add(time.Duration(1+random.IntN(20*24)) * time.Hour)
		}
		if random.IntN(3) == 0 {
			tr.Late = Duration(time.Duration(1+random.IntN(100)) * time.Hour)
		}
		last := at(t, "2026-03-10").Add(time.Duration(random.IntN(20*24*60)) * time.Minute)
		now := last.Add(time.Duration(random.IntN(10*24*60)) * time.Minute)
		s := timesOf(t, tr)
		var due, fresh []time.Time
		for next := s.Next(last); !next.IsZero() && !s.FiresAt(next).After(now); next = s.Next(next) {
			due = append(due, next)
			if tr.Late == 0 || now.Sub(s.FiresAt(next)) <= time.Duration(tr.Late) {
				fresh = append(fresh, next)
			}
		}
		most := tr.MaxCatchUp
		if most == 0 {
			most = defaultCatchUp
		}
		want := fresh[max(0, len(fresh)-most):]
		p := s.Plan(last, now)
		got := slices.SortedFunc(slices.Values(p.Times), time.Time.Compare)
		if !slices.EqualFunc(got, want, time.Time.Equal) || p.Omitted != int64(len(due)-len(want)) || p.Missed != (len(due) > 1) {
			t.Fatalf("%+v from %v to %v: %v, omitted %d, missed %v\nwant %v of %d", tr, last, now, got, p.Omitted, p.Missed, want, len(due))
		}
		if len(due) > 0 && !p.Newest.Equal(due[len(due)-1]) {
			t.Fatalf("%+v: newest %v, want %v", tr, p.Newest, due[len(due)-1])
		}
		if again := s.Plan(last, now); !slices.Equal(p.Times, again.Times) {
			t.Fatalf("%+v: %v, and then %v", tr, p.Times, again.Times)
		}
	}
}
