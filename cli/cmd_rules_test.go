package cli

import (
	"testing"
)

// Unreadable rules are an error with key and remedy, and do not hide the rest of status.
func TestRulesThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		name, key, why, remedy string
		spoil                  []any
	}{
		{"pauses of another version", "__rules:shop", "stored rules are not readable", "HDEL", []any{"HSET", "__rules:shop", "pause app", `{"v":2}`}},
		{"garbage among the blocks", "__block:shop", "stored rules are not readable", "HDEL", []any{"HSET", "__block:shop", "block app", `{`}},
		{"a wrong type", "__block:shop", "key holds a wrong Redis type", "delete or rename it", []any{"SET", "__block:shop", "x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, nil)
			s.registered()
			s.attended()
			s.checked(0)
			if err := s.rdb.Do(t.Context(), tt.spoil...).Err(); err != nil {
				t.Fatal(err)
			}
			why := "rules of app shop (" + tt.key + "): " + tt.why
			s.untyped("status", "orders").want(t, 0, "what is paused or blocked cannot be read", "")
			for _, args := range [][]string{{"rules", "ls"}, {"check"}} {
				s.untyped(args...).want(t, 1, "", why)
				s.untyped(args...).want(t, 1, "", tt.remedy)
			}
			s.untyped("doctor").want(t, 3, why, "")
			s.untyped("doctor").want(t, 3, "partitions wait that find a new owner", "")
			s.rdb.Del(t.Context(), tt.key)
			s.checked(0)
		})
	}
}
