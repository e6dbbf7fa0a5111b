package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// aNotingCourse notes of how many partitions each call of confirm is. The call with the number fails has no reply.
type aNotingCourse struct {
	course
	of    []int
	fails int
}

func (c *aNotingCourse) confirm(_ context.Context, work []*partition) (of []*partition, errs []error) {
	if c.of = append(c.of, len(work)); len(c.of) == c.fails {
		return work[:1], []error{errors.New("no reply")}
	}
	return nil, nil
}

// The server executes the commits of a pipeline in a row, while all others wait. After an error the acks behind it are for the next round, whose pause comes first.
func TestARoundOfCommitsDoesNotHoldTheServer(t *testing.T) {
	inRig(t, nil, func(r *rig) {
		for n, want := range map[int][]int{1: {1}, 3: {3}, 16: {8, 8}, 17: {8, 8, 1}, 1024: slices.Repeat([]int{64}, 16), 0: nil} {
			c := &aNotingCourse{course: byPosition{}}
			a := newAcker(&member{course: c})
			if err := a.send(t.Context(), slices.Repeat([]*partition{r.partition()}, n)); err != nil || !slices.Equal(c.of, want) || len(a.dirty) != 0 {
				r.t.Errorf("commits of %d partitions: %v by %v, want %v; %d are left", n, err, c.of, want, len(a.dirty))
			}
		}
		c := &aNotingCourse{course: byPosition{}, fails: 2}
		a := newAcker(&member{course: c})
		if err := a.send(t.Context(), slices.Repeat([]*partition{r.partition()}, 24)); err == nil || !slices.Equal(c.of, []int{8, 8}) || len(a.dirty) != 8+1 {
			r.t.Errorf("no reply to the second trip: %v, tried %v, %d are left, want 9", err, c.of, len(a.dirty))
		}
	})
}
