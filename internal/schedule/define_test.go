package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/servers"
)

// few lets so many round trips through.
type few struct{ left int }

var errCutOff = errors.New("cut off")

func (f *few) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *few) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *few) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.left--; f.left < 0 {
			for _, c := range cmds {
				c.SetErr(errCutOff)
			}
			return errCutOff
		}
		return next(ctx, cmds)
	}
}

// Wherever an operation that stores a job is cut off, no trigger fires until all partitions know what follows from it.
func TestTriggersFireOnceAllIsKnown(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		def := &jobs.Job{Name: "j", Triggers: []jobs.Trigger{{Name: "x", Cron: "@hourly"}}, Tasks: []jobs.Task{{Name: "t0", After: []string{"trigger/x"}, Handler: "h"}}}
		for n := range 8 {
			def.Tasks = append(def.Tasks, jobs.Task{Name: fmt.Sprint("t", n+1), After: []string{fmt.Sprint("task/t", n)}, Handler: "h"})
		}
		now := Compile(map[string]*Job{"j": {Rev: 1, Def: def}}, parts, partOf, 0)
		old := Compile(nil, parts, partOf, 0)
		for trips := 1; ; trips++ {
			s, rdb := open(t, addr, keys.Standalone)
			if err := rdb.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			s.client.NoRetry.AddHook(&few{trips})
			err := s.Redefine(t.Context(), 1, old, now)
			fires, lacks := false, []string{}
			for n := range parts {
				fires = fires || rdb.ZCard(t.Context(), s.key("sheap", n)).Val() > 0
				known := rdb.HGetAll(t.Context(), s.key("sdef", n)).Val()
				for field, text := range now[n].Fields {
					if known[field] != text {
						lacks = append(lacks, field)
					}
				}
			}
			if fires && len(lacks) > 0 {
				t.Errorf("behind %d round trips the trigger fires, and partitions lack %s", trips, strings.Join(lacks, ", "))
			}
			if err == nil {
				if !fires || len(lacks) > 0 {
					t.Errorf("in the end the trigger fires: %v; partitions lack %q", fires, lacks)
				}
				return
			}
			if trips > 50 {
				t.Fatal(err)
			}
		}
	})
}

// What has forgotten its jobs drops no tokens until it has been told them again.
func TestAPartitionThatForgotWaits(t *testing.T) {
	k := &task{name: "j0/task/a", tries: 1}
	inPartition(t, k, func(t *testing.T, m *sim, p int) {
		m.must(m.rdb.Del(t.Context(), m.s.key("sdef", p)).Err())
		f := &Fact{ID: "1-1", Source: "j0/trigger/x", Time: 1, Generation: 1, Priority: Normal}
		tokens := map[int][]Token{p: {{Fact: f, Task: k.name}}}
		if _, err := m.s.Apply(t.Context(), tokens); err == nil || !strings.HasPrefix(err.Error(), "FORGOTTEN ") {
			t.Errorf("it was applied: %v", err)
		}
		m.must(m.s.Define(t.Context(), p, 1, NewDefinition(), m.definitions(nil)[p], true))
		m.token(k, 1, 1)
		m.want("runs", len(m.taken(p, 9, "r1")), 1)
	})
}
