package store

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// The connection to a server that became a replica is dropped: its address may be another's by now.
func TestAReplicaIsLeft(t *testing.T) {
	t.Parallel()
	e := realEnv(t)
	other := redistest.Start(t)
	way := faultproxy.Start(t, e.addr)
	c := try(Open(redisconn.Options{URL: "redis://" + way.Addr(), Keys: e.keys})).must(t)
	defer c.Close()
	by := func(id string) func() Appended { return func() Appended { return sendWith(e.ctx(), c, id) } }
	inTransaction := func() Appended {
		return Producer{c.core}.Append(e.ctx(), []Append{{Stream: "orders", Records: large(0, 5, 64<<10)}})[0]
	}
	for _, send := range [][]func() Appended{{by(""), by(""), by("")}, {by("a"), by("b"), by("c")}, {inTransaction, inTransaction, inTransaction}} { // by either script, or none
		e.must(send[0]().Err)
		host, port, _ := strings.Cut(other.Addr(), ":")
		e.must(e.raw.Do(e.ctx(), "REPLICAOF", host, port).Err())
		way.SetTarget(other.Addr())
		got := send[1]()
		if !redisconn.ReplyHas(got.Err, "READONLY") || got.Unknown || len(got.IDs) > 0 {
			t.Errorf("got %+v", got)
		}
		e.must(send[2]().Err)
		e.must(e.raw.Do(e.ctx(), "REPLICAOF", "NO", "ONE").Err())
		way.SetTarget(e.addr)
		way.CutAll()
		redistest.Eventually(t, "the way back", func() bool { return c.Redis().Ping(e.ctx()).Err() == nil })
	}
}
