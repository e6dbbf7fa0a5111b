package redisconn

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
)

// An idleCluster is two nodes in fake time that record what they are asked for.
type idleCluster struct {
	mu    sync.Mutex
	asked map[string][]time.Time // by key
	block map[string]bool        // each argument of BLOCK, "" for none
	conns map[string]int         // used for reads, by node
	due   map[string]time.Time   // keys that get an entry, and when
}

var idleNodes = []string{"127.0.0.1:1", "127.0.0.1:2"}

func (k *idleCluster) dial(_ context.Context, _, addr string) (net.Conn, error) {
	client, server := net.Pipe()
	go k.serve(server, addr)
	return client, nil
}

func (k *idleCluster) serve(conn net.Conn, addr string) {
	defer conn.Close()
	in, reading := bufio.NewReaderSize(conn, 1<<20), false
	var replies strings.Builder
	for {
		args, err := requested(in)
		if err != nil {
			return
		}
		if args[0] == "xreadgroup" && !reading {
			reading = true
			k.mu.Lock()
			k.conns[addr]++
			k.mu.Unlock()
		}
		replies.WriteString(k.reply(args))
		if in.Buffered() > 0 {
			continue
		}
		if _, err := io.WriteString(conn, replies.String()); err != nil {
			return
		}
		replies.Reset()
	}
}

// requested is the next command.
func requested(in *bufio.Reader) (args []string, err error) {
	number := func() int {
		line, failed := in.ReadString('\n')
		n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimLeft(line, "*$")))
		if failed != nil {
			err = failed
		}
		return n
	}
	for n := number(); n > 0 && err == nil; n-- {
		word := make([]byte, number()+len("\r\n"))
		if _, failed := io.ReadFull(in, word); failed != nil {
			err = failed
		}
		args = append(args, string(word[:len(word)-2]))
	}
	return args, err
}

func (k *idleCluster) reply(args []string) string {
	switch args[0] {
	case "hello":
		return "-ERR unknown command\r\n"
	case "cluster": // SLOTS: half of them each
		return "*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n*3\r\n:8192\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:2\r\n"
	case "client":
		return ":7\r\n"
	case "xreadgroup":
		return k.read(args)
	case "xread":
		return "*-1\r\n"
	}
	return "+OK\r\n"
}

// read answers a read of one key that blocks in vain.
func (k *idleCluster) read(args []string) string {
	block, key := "", args[len(args)-2]
	for i, arg := range args {
		if arg == "block" {
			block = args[i+1]
			ms, _ := strconv.Atoi(block)
			defer func() { <-time.After(time.Duration(ms) * time.Millisecond) }()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked[key] = append(k.asked[key], time.Now())
	k.block[block] = true
	if at, ok := k.due[key]; ok && !time.Now().Before(at) {
		delete(k.due, key)
		return fmt.Sprintf("*1\r\n*2\r\n$%d\r\n%s\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$4\r\ndata\r\n$1\r\nx\r\n", len(key), key)
	}
	return "*-1\r\n"
}

// idleReader is a reader of n partitions, each in a slot of its own.
func idleReader(t *testing.T, n int) (k *idleCluster, r *Reader, logs []string) {
	t.Helper()
	k = &idleCluster{asked: map[string][]time.Time{}, block: map[string]bool{}, conns: map[string]int{}, due: map[string]time.Time{}}
	shared := redis.NewClusterClient(&redis.ClusterOptions{Addrs: idleNodes[:1], Dialer: k.dial})
	names := keys.Keys{App: "shop", Layout: keys.Cluster}
	c, err := Open(Options{Redis: shared, Keys: names})
	if err != nil {
		t.Fatal(err)
	}
	r = c.NewReader()
	t.Cleanup(func() {
		r.Close()
		c.Close()
		shared.Close()
	})
	slots := map[int]bool{}
	for p := 0; len(logs) < n; p++ {
		if log := names.Partition("orders", p); !slots[Slot(log)] {
			slots[Slot(log)] = true
			logs = append(logs, log)
		}
	}
	return k, r, logs
}

// As docs/operating.md says, partitions that share a connection are polled in turn. None waits
// longer than 20 ms, or 1 ms for each partition, for its next turn. No request blocks meanwhile,
// and the number of requests in a second is bounded.
func TestPartitionsThatShareAReaderAreAskedInTurn(t *testing.T) {
	const block, minutes = 2 * time.Second, time.Minute
	for n, most := range map[int]time.Duration{2: 20 * time.Millisecond, 20: 20 * time.Millisecond, 64: 64 * time.Millisecond, 200: 200 * time.Millisecond} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, r, logs := idleReader(t, n)
				begin := time.Now()
				for time.Since(begin) < minutes {
					if out, err := r.Read(t.Context(), "g", "c", logs, 10, block); out != nil || err != nil {
						t.Fatalf("%v, %v", out, err)
					}
				}
				turns := len(k.asked[logs[0]])
				for _, log := range logs {
					if len(k.asked[log]) != turns {
						t.Errorf("%s was asked %d times in %d turns", log, len(k.asked[log]), turns)
					}
					for i, at := range k.asked[log][1:] {
						if gap := at.Sub(k.asked[log][i]); gap > most {
							t.Fatalf("%s was not asked for %v", log, gap)
						}
					}
				}
				equal(t, "blocks", k.block, map[string]bool{"": true})
				for _, node := range idleNodes {
					if k.conns[node] > 1 {
						t.Errorf("%d connections to %s", k.conns[node], node)
					}
				}
				// Ten turns while the pauses grow, and each read begins and ends with one.
				if bound := int(minutes/most) + 10 + 2*int(minutes/block); turns > bound {
					t.Errorf("%d turns, at most %d are asked for", turns, bound)
				}
			})
		})
	}
}

// An entry waits no longer, whenever it comes, and less if another one came just before.
func TestAnEntryWaitsForATurnAtMost(t *testing.T) {
	const n, most = 64, 64 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		k, r, logs := idleReader(t, n)
		for i := range 100 {
			after := time.Duration(i) * 3 * time.Millisecond
			came := time.Now().Add(after)
			k.mu.Lock()
			k.due[logs[i%n]] = came
			k.mu.Unlock()
			for got := ""; got == ""; {
				out, err := r.Read(t.Context(), "g", "c", logs, 10, 2*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range out {
					got = c.Key
				}
			}
			if waited := time.Since(came); waited > min(most, after+firstSweepPause) || waited < 0 {
				t.Errorf("an entry %v after the last one waited for %v", after, waited)
			}
		}
	})
}

// A reader with a single partition blocks at the server.
func TestAPartitionAloneIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r, logs := idleReader(t, 1)
		begin := time.Now()
		for range 30 {
			if out, err := r.Read(t.Context(), "g", "c", logs, 10, 2*time.Second); out != nil || err != nil {
				t.Fatalf("%v, %v", out, err)
			}
		}
		equal(t, "passed", time.Since(begin), time.Minute)
		equal(t, "asked", len(k.asked[logs[0]]), 30)
		equal(t, "blocks", k.block, map[string]bool{"2000": true})
	})
}

// "As long as the number stays the same, all commands go to the servers that they went to before": also if a partition goes to a
// node that the reader was connected to before, as one that was a replica meanwhile and is promoted again.
func TestConnectionsTellOfAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, logs := idleReader(t, 8)
		follow := func() int64 {
			t.Helper()
			after := make([]string, len(logs))
			for i := range after {
				after[i] = "0-0"
			}
			if _, err := r.Follow(t.Context(), logs, after, 1, 0); err != nil {
				t.Fatal(err)
			}
			return r.Connections()
		}
		before := follow()
		equal(t, "without a change", follow(), before)
		k := r.c.cluster
		slot := Slot(logs[0])
		to := idleNodes[0]
		if k.known(logs[0]).addr == to {
			to = idleNodes[1]
		}
		k.slots[slot].Store(k.node(to))
		if after := follow(); after == before {
			t.Errorf("%d connections before and after %s went to another node", before, logs[0])
		}
	})
}
