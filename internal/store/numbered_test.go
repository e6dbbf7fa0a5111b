package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
)

const newsLog, newsNum, newsHolders = "__strm:example.news.0", "__num:example.news.0", "__holder:example.news.0"

// topic writes the metadata of the topic news.
func (e *env) topic(size int64, overflow string, processors ...string) {
	e.t.Helper()
	_, err := e.EnsureMeta(e.ctx(), "news", Meta{Kind: KindTopic, Partitions: 2, MaxLen: size, Overflow: overflow, Processors: processors, DedupWindow: time.Minute.Milliseconds()})
	e.must(err)
}

// publish appends records to partition 0 of news, with these IDs or none.
func (e *env) publish(ctx context.Context, n int, ids ...string) Appended {
	return e.Append(ctx, []Append{{Stream: "news", Kind: KindTopic, Records: records(0, n), IDs: ids}})[0]
}

func (e *env) newsIDs() []string {
	e.t.Helper()
	return ids(try(e.raw.XRange(e.ctx(), newsLog, "-", "+").Result()).must(e.t))
}

// numbered fails the test unless the log has the numbers first to last, in times that do not fall, and says so.
func (e *env) numbered(first, last int) {
	e.t.Helper()
	got, ms := e.newsIDs(), ""
	if len(got) != last-first+1 {
		e.t.Fatalf("%d entries, want %d to %d", len(got), first, last)
	}
	for i, id := range got {
		at, n, _ := strings.Cut(id, "-")
		if n != fmt.Sprint(first+i) || len(at) < len(ms) || len(at) == len(ms) && at < ms {
			e.t.Fatalf("entry %d is %s, behind %s", first+i, id, ms)
		}
		ms = at
	}
	equal(e.t, "last ID", e.raw.Get(e.ctx(), newsNum).Val(), got[len(got)-1])
}

func TestNumbersHaveNoGaps(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.topic(0, "")
		var senders sync.WaitGroup
		for s := range 8 {
			senders.Go(func() {
				for i := range 20 {
					var ids []string
					for k := range (s + i) % 3 { // none, or as many as there are records
						ids = append(ids, fmt.Sprintf("%d of %d by %d", k, i, s))
					}
					if got := e.publish(e.ctx(), max(len(ids), 1), ids...); got.Err != nil {
						t.Error(got.Err)
					}
				}
			})
		}
		senders.Wait()
		n := len(e.newsIDs())
		e.numbered(1, n)

		got := e.publish(e.ctx(), 3, "again", "", "again")
		e.must(got.Err)
		equal(t, "duplicates", fmt.Sprint(got.Duplicate), "[false false true]")
		e.must(e.publish(e.ctx(), 1, "again").Err)
		e.numbered(1, n+2)
	})
}

func TestNumbersAreWhatTheyWere(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.topic(0, "")
		e.must(e.publish(e.ctx(), 3).Err)
		far := "99999999999999"
		for _, step := range []struct {
			name string
			do   func() error
			want string // the ID of the next entry, or its end
		}{
			{"the clock steps back", func() error { return e.raw.Set(e.ctx(), newsNum, far+"-3", 0).Err() }, far + "-4"},
			{"the key is lost", func() error { return e.raw.Del(e.ctx(), newsNum).Err() }, far + "-5"},
			{"the log is trimmed", func() error { return e.raw.XTrimMaxLen(e.ctx(), newsLog, 0).Err() }, far + "-6"},
			{"the log is gone", func() error { return e.raw.Del(e.ctx(), newsLog).Err() }, far + "-7"},
			{"more than 32 bits", func() error { return e.raw.Set(e.ctx(), newsNum, "1-9007199254740000", 0).Err() }, "-9007199254740001"},
			{"all is gone", func() error { return e.raw.Del(e.ctx(), newsLog, newsNum).Err() }, "-1"},
		} {
			e.must(step.do())
			if step.name == "more than 32 bits" {
				e.must(e.raw.Del(e.ctx(), newsLog).Err())
			}
			got := e.publish(e.ctx(), 1)
			if got.Err != nil || !strings.HasSuffix(got.IDs[0], step.want) {
				t.Errorf("%s: got %v, %v, want %s", step.name, got.IDs, got.Err, step.want)
			}
		}
	})
}

func TestNumbersThatCannotBeGiven(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.topic(0, "")
		e.must(e.raw.Set(e.ctx(), newsNum, "text", 0).Err())
		got := e.publish(e.ctx(), 1)
		if got.Err == nil || got.Unknown || !strings.Contains(got.Err.Error(), "GARBLED") {
			t.Errorf("a garbled last ID: got %+v", got)
		}
		e.must(e.raw.Del(e.ctx(), newsNum).Err())
		e.must(e.raw.HSet(e.ctx(), newsNum, "a", "b").Err())
		if got = e.publish(e.ctx(), 1); !errors.Is(got.Err, redisconn.ErrWrongType) {
			t.Errorf("another type: got %+v", got)
		}
		equal(t, "entries", len(e.newsIDs()), 0)
		e.must(e.raw.Del(e.ctx(), newsNum).Err())
		e.must(e.raw.Set(e.ctx(), newsLog, "text", 0).Err())
		if got = e.publish(e.ctx(), 1); !errors.Is(got.Err, redisconn.ErrWrongType) {
			t.Errorf("another type of log: got %+v", got)
		}
		e.must(e.raw.Del(e.ctx(), newsLog).Err())
		e.must(e.publish(e.ctx(), 2).Err)
		e.numbered(1, 2)
	})
}

// A reply that is lost leaves no gap: whoever asks again gets the next numbers.
func TestNumbersBehindALostReply(t *testing.T) {
	e := realEnv(t)
	proxy, hurt := e.behindProxy()
	hurt.topic(0, "")
	e.must(hurt.publish(e.ctx(), 1, "a").Err)
	proxy.On("EVALSHA", 1).Do(faultproxy.CloseAfter)
	if got := hurt.publish(e.ctx(), 2, "b", "c"); !got.Unknown {
		t.Fatalf("got %+v", got)
	}
	e.must(hurt.publish(e.ctx(), 2, "b", "c").Err)
	e.numbered(1, 3)
}

func TestOnlyWhoKnowsATopicAppends(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.topic(0, "")
		e.bounded(0, "")
		got := e.Append(e.ctx(), []Append{{Stream: "news", Records: records(0, 1)}, {Stream: "orders", Kind: KindTopic, Records: records(0, 1)}, {Stream: "none", Kind: KindTopic, Records: records(0, 1)}})
		if !errors.As(got[0].Err, new(*SendKindError)) {
			t.Errorf("an ordinary send to a topic: got %v", got[0].Err)
		}
		for _, one := range got[1:] {
			if conflict := (*MetaConflictError)(nil); !errors.As(one.Err, &conflict) {
				t.Errorf("a topic that is none: got %v", one.Err)
			}
		}
	})
}

func TestHoldersKeepEntries(t *testing.T) {
	now := time.Now().UnixMilli()
	for _, tt := range []struct {
		name    string
		holders map[string]string // → number, and what stands behind its ID
		read    int               // by printer; -1: it has not begun
		want    int               // first number that stays
	}{
		{"nobody", nil, 0, 14},
		{"one", map[string]string{"deliver:1": "5"}, 0, 6},
		{"the slowest of two", map[string]string{"deliver:1": "9", "deliver:2": "3"}, 0, 4},
		{"one that has had nothing", map[string]string{"deliver:1": "0", "deliver:2": "9"}, 0, 1},
		{"a pin", map[string]string{"deliver:1": "9", "pin:mail": fmt.Sprint("2 ", now+60000)}, 0, 3},
		{"a pin of long ago", map[string]string{"deliver:1": "9", "pin:mail": fmt.Sprint("2 ", now-60000)}, 0, 10},
		{"a processor that is slower", map[string]string{"deliver:1": "9"}, 4, 5},
		{"a processor that is faster", map[string]string{"deliver:1": "9"}, 12, 10},
		{"a processor that has not begun", map[string]string{"deliver:1": "9"}, -1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				var processors []string
				if tt.read != 0 {
					processors = []string{"printer"}
				}
				e.topic(40, OverflowReject, processors...)
				e.must(e.publish(e.ctx(), 20).Err)
				ids := e.newsIDs()
				if p := e.Partition("news", "printer", 0); tt.read > 0 {
					e.own(p, tenure(alice, 1))
					for _, id := range e.read(p, alice, tt.read) {
						e.must(e.raw.XAck(e.ctx(), p.Log, GroupName("printer", alice), id).Err())
					}
				}
				for name, at := range tt.holders {
					var n int
					var til string
					_, _ = fmt.Sscan(at, &n, &til)
					id := "0-0"
					if n > 0 {
						id = ids[n-1]
					}
					e.must(e.raw.HSet(e.ctx(), newsHolders, name, strings.TrimSpace(id+" "+til)).Err())
				}
				_, err := e.Trim(e.ctx(), []TrimRequest{{Log: newsLog, Processors: processors, Size: 9, Holders: newsHolders}})
				e.must(err)
				want := max(tt.want, 1)
				if tt.want == 14 {
					want = 15 // 3/4 of the size are left, 6
				}
				e.numbered(want, 20)
			})
		})
	}
}

func TestAFullTopic(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		e.topic(8, OverflowReject)
		e.must(e.publish(e.ctx(), 8).Err)
		e.must(e.raw.HSet(e.ctx(), newsHolders, "deliver:3", "0-0").Err())
		var full *FullError
		if got := e.publish(e.ctx(), 1); !errors.As(got.Err, &full) || !strings.Contains(full.Error(), "8 of 8 entries: holder deliver:3 is 8 behind") {
			t.Errorf("a holder that needs all: got %v", got.Err)
		}
		e.must(e.raw.HSet(e.ctx(), newsHolders, "deliver:3", e.newsIDs()[3]).Err())
		e.must(e.publish(e.ctx(), 1).Err)
		e.numbered(3, 9) // more room than was wanted, and some of that is left

		e.topic(8, OverflowDropOldest)
		e.must(e.publish(e.ctx(), 7).Err)
		e.numbered(9, 16) // exactly what does not fit
		e.must(e.raw.Del(e.ctx(), newsHolders).Err())
		e.must(e.publish(e.ctx(), 3).Err)
		equal(t, "number of the last", strings.HasSuffix(e.raw.Get(e.ctx(), newsNum).Val(), "-19"), true)
	})
}
