package rebalance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestAssignByExample(t *testing.T) {
	tests := []struct {
		name    string
		prev    map[string][]int
		members []string
		n       int
		want    map[string][]int
	}{
		{"no members", map[string][]int{"a": {0}}, nil, 2, map[string][]int{}},
		{"alone", nil, []string{"a"}, 3, map[string][]int{"a": {0, 1, 2}}},
		{"no partitions", nil, []string{"a"}, 0, map[string][]int{"a": {}}},
		{"join", map[string][]int{"a": {0, 1, 2, 3}}, []string{"a", "b"}, 4, map[string][]int{"a": {0, 1}, "b": {2, 3}}},
		{"leave", map[string][]int{"a": {0, 3}, "b": {1, 2}}, []string{"b"}, 4, map[string][]int{"b": {0, 1, 2, 3}}},
		{"replace", map[string][]int{"a": {0, 3}, "b": {1, 2}}, []string{"b", "c"}, 4, map[string][]int{"b": {1, 2}, "c": {0, 3}}},
		{"more members than partitions", map[string][]int{"a": {0}, "b": {}}, []string{"a", "b"}, 1, map[string][]int{"a": {0}, "b": {}}},
		{"out of range", map[string][]int{"a": {0, 9, -1}}, []string{"a"}, 2, map[string][]int{"a": {0, 1}}},
		{"twice", map[string][]int{"a": {0, 1}, "b": {1}}, []string{"b", "a"}, 2, map[string][]int{"a": {0}, "b": {1}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := assign(test.prev, named(test.members), test.n, "x", wishes{}); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAssignProperties(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(64)
		prev, members := map[string][]int{}, []string{}
		for step := range 20 {
			joined := len(members) == 0 || r.IntN(3) > 0
			if joined {
				members = append(members, fmt.Sprintf("m%d", step))
			} else {
				i := r.IntN(len(members))
				members = slices.Delete(members, i, i+1)
			}
			if len(members) == 0 {
				prev = map[string][]int{}
				continue
			}
			next := assign(prev, named(members), n, "salt", wishes{})
			if err := fair(next, members, n); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			if kept, most := kept(prev, next), keepable(prev, members, n); kept != most {
				t.Fatalf("seed %d step %d: %d partitions stayed, %d could: %v → %v", seed, step, kept, most, prev, next)
			}
			if moved, most := n-kept(prev, next), (n+len(members)-1)/len(members); joined && len(members) > 1 && moved > most {
				t.Fatalf("seed %d step %d: a join moved %d of %d partitions, at most %d may", seed, step, moved, n, most)
			}
			shuffled := slices.Clone(members)
			r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			mixed := map[string][]int{}
			for _, id := range shuffled {
				mixed[id] = slices.Clone(prev[id])
				r.Shuffle(len(mixed[id]), func(i, j int) { mixed[id][i], mixed[id][j] = mixed[id][j], mixed[id][i] })
			}
			if again := assign(mixed, named(shuffled), n, "salt", wishes{}); !reflect.DeepEqual(again, next) {
				t.Fatalf("seed %d step %d: the order of the arguments matters: %v and %v", seed, step, next, again)
			}
			prev = next
		}
	}
}

// Remainders of 50 processors of one partition, with all four workers from the start, and after one
// of them left.
func TestAssignSpreadsRemainders(t *testing.T) {
	count := map[string]int{}
	after := map[string]int{}
	for i := range 50 {
		salt := fmt.Sprintf("app.orders.processor%d", i)
		var members []member
		for w := range 4 {
			members = append(members, member{ID: fmt.Sprintf("id-%d-%d", w, i), Worker: fmt.Sprintf("host-%d", w)})
		}
		first := assign(nil, members, 1, salt, wishes{})
		for _, m := range members {
			count[m.Worker] += len(first[m.ID])
		}
		second := assign(first, members[1:], 1, salt, wishes{})
		for _, m := range members[1:] {
			after[m.Worker] += len(second[m.ID])
		}
		// The same workers under other IDs get the same.
		renamed := slices.Clone(members)
		for j := range renamed {
			renamed[j].ID = "new-" + renamed[j].ID
		}
		for j, m := range members {
			if got, want := len(assign(nil, renamed, 1, salt, wishes{})[renamed[j].ID]), len(first[m.ID]); got != want {
				t.Errorf("processor %d: %s gets %d partitions under a new ID, %d before", i, m.Worker, got, want)
			}
		}
	}
	for w := range 4 {
		if n := count[fmt.Sprintf("host-%d", w)]; n < 5 || n > 22 {
			t.Errorf("50 partitions over 4 workers: %v", count)
		}
	}
	for w := 1; w < 4; w++ {
		if n := after[fmt.Sprintf("host-%d", w)]; n < 8 || n > 26 {
			t.Errorf("50 partitions over the 3 workers left: %v", after)
		}
	}
}

func named(ids []string) []member {
	var members []member
	for _, id := range ids {
		members = append(members, member{ID: id, Worker: "worker of " + id})
	}
	return members
}

func fair(next map[string][]int, members []string, n int) error {
	if ids := slices.Sorted(maps.Keys(next)); !slices.Equal(ids, slices.Sorted(slices.Values(members))) {
		return fmt.Errorf("members %v got an assignment for %v", members, ids)
	}
	owner := map[int]string{}
	least, most := n, 0
	for id, list := range next {
		least, most = min(least, len(list)), max(most, len(list))
		for _, p := range list {
			if p < 0 || p >= n || owner[p] != "" {
				return fmt.Errorf("partition %d goes to %q and %q", p, owner[p], id)
			}
			owner[p] = id
		}
	}
	if len(owner) != n || most-least > 1 {
		return fmt.Errorf("%d of %d partitions are assigned, sizes from %d to %d", len(owner), n, least, most)
	}
	return nil
}

func kept(prev, next map[string][]int) int {
	n := 0
	for id, list := range next {
		for _, p := range list {
			if slices.Contains(prev[id], p) {
				n++
			}
		}
	}
	return n
}

// keepable returns how many partitions could stay at best: every member keeps up to its share, and
// those with more than the smaller share get the larger ones.
func keepable(prev map[string][]int, members []string, n int) int {
	base, extra := n/len(members), n%len(members)
	best := 0
	for _, id := range members {
		best += min(len(prev[id]), base)
		if len(prev[id]) > base && extra > 0 {
			best++
			extra--
		}
	}
	return best
}
