package cli

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
)

func TestVerifyFindsWhatIsNotRight(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer", Codec: codec.JSON})
	s.send(40)
	s.run("stream", "verify", "orders").want(t, 0, "total      40", "")
	log := func(n int) string { return fmt.Sprint("__strm:shop.orders.", n) }
	ids := s.idsOf(1)
	// One entry is deleted between others, one cannot be decoded, one is in the wrong partition.
	if err := s.rdb.XDel(t.Context(), log(1), ids[3]).Err(); err != nil {
		t.Fatal(err)
	}
	bad := s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: log(0), Values: []any{"data", "{"}}).Val()
	first := s.rdb.XRangeN(t.Context(), log(0), "-", "+", 1).Val()[0]
	moved := s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: log(1), Values: first.Values}).Val()
	for _, run := range []func(...string) result{s.run, s.untyped} {
		r := run("stream", "verify", "orders", "--output", "json")
		if r.code != 3 {
			t.Fatalf("%+v", r)
		}
		r.code = 0
		v := parse[verified](t, r)
		if p := v.Partitions[0]; p.Undecodable != 1 || p.Misplaced != 0 || p.Deleted != "" {
			t.Errorf("%+v", p)
		}
		if p := v.Partitions[1]; p.Undecodable != 0 || p.Misplaced != 1 || p.Deleted != ids[3] {
			t.Errorf("%+v", p)
		}
		if len(v.Troubles) != 2 || v.Troubles[0].ID != eventID(0, bad) || v.Troubles[1].ID != eventID(1, moved) || v.Troubles[1].What != "belongs to partition 0 by its key" {
			t.Errorf("%+v", v.Troubles)
		}
	}
	r := s.run("stream", "verify", "orders", "-n", "1")
	r.want(t, 3, "0/"+bad+": cannot be decoded: ", "")
	r.want(t, 3, "and 1 more\n", "")
	s.run("stream", "verify", "orders", "--partition", "0").want(t, 3, "0/"+bad, "")
	s.run("stream", "verify", "nothing").want(t, 1, "", `no stream "nothing"`)
	s.run("stream", "verify").want(t, 2, "", "which stream?")
	if groups := s.rdb.XInfoGroups(t.Context(), log(0)).Val(); len(groups) != 0 {
		t.Errorf("it left groups behind: %v", groups)
	}
}
