package keymigrate

import (
	"context"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A full server lets its keys be renamed: moving them away is its remedy.
func TestFullServer(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scene(t, rdb)
	before, _ := contents(t, rdb)
	must(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if err := rdb.Set(t.Context(), "more", "1", 0).Err(); err == nil {
		t.Fatal("the server is not full")
	}
	move(t, rdb, Options{})
	must(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	after, names := contents(t, rdb)
	differ(t, before, after)
	if names["standalone"] != 0 {
		t.Errorf("%v", names)
	}
}

// A full target has an error of its own, and the move goes on once there is room.
func TestFullTarget(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	other := redistest.Start(t)
	raw := other.Client(t)
	scene(t, rdb)
	before, _ := contents(t, rdb)
	to := Options{Target: other.URL()}
	m := mover(t, rdb, to)
	m.o.Report = func(step string, _, _ int) {
		if step == "keys copied" {
			must(t, raw.ConfigSet(t.Context(), "maxmemory", "1").Err())
		}
	}
	_, err := m.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "redis at "+other.Addr()+": restore ") || !strings.Contains(err.Error(), "OOM") || !strings.Contains(err.Error(), "run this again") {
		t.Fatalf("got %v", err)
	}
	must(t, raw.ConfigSet(t.Context(), "maxmemory", "0").Err())
	move(t, rdb, to)
	kept, _ := contents(t, rdb)
	differ(t, before, strip(kept))
}

// An older server cannot read what a newer one dumps.
func TestOlderTarget(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	other := redistest.Start(t)
	scene(t, rdb)
	m := mover(t, rdb, Options{Target: other.URL()})
	data := []byte(rdb.Dump(t.Context(), plain.Streams()).Val())
	binary.LittleEndian.PutUint16(data[len(data)-10:], 9999) // the version of the format
	err := m.target.restoreError(t.Context(), "k", other.Client(t).Restore(t.Context(), "k", 0, string(data)).Err())
	if err == nil || !strings.Contains(err.Error(), "must not be the older of the two") || !strings.Contains(err.Error(), other.Addr()+" (") {
		t.Errorf("got %v", err)
	}
}

// A target with other settings stores the same in another form, so contents are compared.
func TestTargetWithOtherSettings(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	other := redistest.Start(t, "--hash-max-listpack-entries", "0", "--zset-max-listpack-entries", "0", "--stream-node-max-entries", "1")
	scene(t, rdb)
	before, _ := contents(t, rdb)
	move(t, rdb, Options{Target: other.URL()})
	there, _ := contents(t, other.Client(t))
	for name, text := range before {
		if !strings.HasPrefix(name, "{Kind") {
			there[name] = text
		}
	}
	differ(t, before, there)
}

// A key that differs is not taken for a copy.
func TestCopyThatDiffers(t *testing.T) {
	for name, change := range map[string]func(m *Mover, key string) error{
		"an entry less": func(m *Mover, key string) error {
			return m.target.client.Redis().XTrimMaxLen(t.Context(), key, 3).Err()
		},
		"an ack more": func(m *Mover, key string) error {
			return m.target.client.Redis().XAck(t.Context(), key, "printer@0123", "1000-2").Err()
		},
		"another position": func(m *Mover, key string) error {
			return m.target.client.Redis().XGroupSetID(t.Context(), key, "printer@0123", "1000-5").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			other := redistest.Start(t)
			scene(t, rdb)
			m := mover(t, rdb, Options{Target: other.URL()})
			var err error
			if m.st, err = m.source.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			must(t, m.mark(t.Context()))
			must(t, m.target.claim(t.Context(), m.st.mark))
			must(t, m.renamer().rename(t.Context()))
			must(t, m.target.copy(t.Context(), m.st.mark, m.o.Report))
			key := tagged.Partition("orders", 0)
			must(t, change(m, key))
			if err := m.target.copy(t.Context(), m.st.mark, m.o.Report); err == nil || !strings.Contains(err.Error(), key+" on the redis at") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The administrator's rights in docs/security.md are enough here; the other server needs one more.
func TestRights(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	must(t, err)
	_, rules, found := strings.Cut(string(text), "ACL SETUSER admin on >secret ")
	rules, _, _ = strings.Cut(rules, "\n")
	if !found {
		t.Fatal("docs/security.md has no administrator")
	}
	as := func(server *redistest.Server, more ...string) (*redis.Client, string) {
		must(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "admin", "on", ">secret").Err())
		for _, rule := range append(strings.Fields(rules), more...) {
			must(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "admin", rule).Err())
		}
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "admin", Password: "secret", DisableIdentity: true})
		t.Cleanup(func() { rdb.Close() })
		return rdb, "redis://admin:secret@" + server.Addr()
	}
	first, second := redistest.Start(t), redistest.Start(t)
	scene(t, first.Client(t))
	rdb, _ := as(first)
	_, url := as(second, "+restore")
	move(t, rdb, Options{})
	move(t, rdb, Options{Back: true})
	move(t, rdb, Options{Target: url, Delete: true})
	_, names := contents(t, second.Client(t))
	if names["cluster"] < 50 {
		t.Errorf("%v", names)
	}
}

// The target is known by its mark, whatever its address is now.
func TestTargetOfAnotherAddress(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	other := redistest.Start(t)
	scene(t, rdb)
	_, port, _ := strings.Cut(other.Addr(), ":")
	o := Options{Target: other.URL()}
	m := mover(t, rdb, o)
	ctx, cancel := context.WithCancel(t.Context())
	m.o.Report = func(step string, _, _ int) {
		if step == "keys copied" {
			cancel()
		}
	}
	if _, err := m.Run(ctx); err == nil {
		t.Fatal("not interrupted")
	}
	o.Target = "redis://localhost:" + port
	move(t, rdb, o)
	o.Target, o.Delete = other.URL(), true
	move(t, rdb, o)
	if _, names := contents(t, rdb); names["cluster"] != 0 {
		t.Errorf("%v", names)
	}
}
