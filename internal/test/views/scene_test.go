package views

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// This test binary also runs the workers.
func TestMain(m *testing.M) {
	if os.Getenv("RUNNEL_WORKER_NAME") != "" {
		app, _ := declare()
		cli.Run(app)
	}
	os.Exit(m.Run())
}

// An order's key begins with the number of its partition; the rest decides its outcome.
type order struct {
	Key string `json:"key"`
}

var errOrder = errors.New("<b>cannot</b> do this order")

// declare returns the app of the scene: five processors, each with its own trouble.
func declare() (*runnel.App, *runnel.Stream[order]) {
	app := runnel.New("shop", &runnel.Options{
		Processor: runnel.ProcessorOptions{Lease: 2 * time.Second, Grace: time.Second},
		Stream: runnel.StreamOptions{
			Partitions: 4, Codec: codec.JSON, KeyField: "key",
			Partitioner: &runnel.Partitioner{Name: "digit", Func: func(key string, n int) int { return int(key[0]-'0') % n }},
		},
	})
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Key }, nil)
	fails := func(what string) runnel.ProcessFunc[order] {
		return func(_ context.Context, events *runnel.Events[order]) error {
			for o := range events.Records() {
				if what != "" && strings.HasSuffix(o.Key, what) {
					return errOrder
				}
			}
			return nil
		}
	}
	orders.Process("printer", fails("-poison"), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2, MinBackoff: time.Millisecond, Jitter: -1, Order: runnel.OrderKey}})
	orders.Process("invoicer", fails("-late"), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: time.Hour, Jitter: -1, Order: runnel.OrderKey}})
	orders.Process("auditor", fails("-bad"), &runnel.ProcessorOptions{OnError: runnel.Quarantine})
	orders.Process("mailer", fails(""), nil)
	orders.Process("billing", func(ctx context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			<-ctx.Done()
		}
		return nil
	}, nil)
	return app, orders
}

type scene struct {
	t       *testing.T
	rdb     redis.UniversalClient
	masters []*redistest.Server
	keys    keys.Keys
	reads   string // as RUNNEL_READS has it
	truth   map[string][4]number
	app     *runnel.App
	orders  *runnel.Stream[order]
	names   map[string]string // what differs from run to run, and what it is called
	urls    []string          // of the workers that live, their HTTP
}

// play creates the scene.
//
//  1. Workers w1 and w2 run all processors but billing, w3 runs billing only.
//  2. mailer is paused; then 45 orders are sent: ten to each partition, and among them
//     a poison one (1), three of one key that is retried in an hour (2), and
//     in the middle of partition 3 a bad one.
//  3. printer makes a dead letter, invoicer parks three, auditor stops at partition 3;
//     billing is busy with the first of each partition when w3 is killed.
//  4. Five more orders go to partition 0, and two to be sent in an hour.
//  5. An operator deletes two entries of partition 0: one that all but mailer and billing
//     are done with, and one that billing has not read.
func play(t *testing.T, layout, reads string) *scene {
	s := &scene{t: t, names: map[string]string{}, keys: keys.Keys{App: "shop", Layout: layout}, reads: reads, truth: truth(reads)}
	t.Setenv("RUNNEL_READS", reads)
	if layout == keys.Cluster {
		cluster := redistest.StartCluster(t, 3, 0)
		s.rdb, s.masters = cluster.Client(t), cluster.Nodes()
		t.Setenv("RUNNEL_REDIS_URL", cluster.URL())
	} else {
		server := redistest.Start(t)
		s.rdb, s.masters = server.Client(t), []*redistest.Server{server}
		t.Setenv("RUNNEL_REDIS_URL", server.URL())
	}
	s.app, s.orders = declare()
	t.Cleanup(func() { s.app.Close() })
	const others = "printer,invoicer,auditor,mailer"
	s.worker("w1", others)
	s.worker("w2", others)
	dead := s.worker("w3", "billing")
	s.awaitOwned()
	s.run(nil, "pause", "orders/mailer", "--why", "the mail server is down", "--who", "ann", "--wait")

	s.send(s.batch(0, 10), append(s.batch(1, 10), "1-poison"), append(s.batch(2, 10), "2-late", "2-late", "2-late"),
		append(append(s.batch(3, 5), "3-bad"), s.batch(3, 5)...))
	s.await("the processors to come to their troubles", func() bool {
		return s.lag("printer") == 0 && s.lag("invoicer") == 0 && s.lag("auditor") == 6 && s.fetched("billing") == 45 && s.fetched("mailer") == 45 &&
			s.rdb.XLen(t.Context(), s.keys.Dead("orders", "printer", 1)).Val() == 1 && s.rdb.HLen(t.Context(), s.keys.Retry("orders", "invoicer", 2)).Val() == 3
	})
	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.urls = s.urls[:2]
	s.await("w3's heartbeat and locks to lapse", func() bool {
		return s.count("__beat:*orders.billing.*")+s.count("__lock:*orders.billing*") == 0
	})
	more := s.send(s.batch(0, 5))
	s.delay("0-tomorrow", "0-tomorrow")
	s.await("what lives to be done with these, and mailer to have read them", func() bool {
		return s.lag("printer") == 0 && s.lag("invoicer") == 0 && s.lag("auditor") == 6 && s.fetched("mailer") == 50
	})
	for _, id := range []string{s.first(0), more[2]} {
		if n := s.rdb.XDel(t.Context(), s.keys.Partition("orders", 0), id).Val(); n != 1 {
			t.Fatalf("deleted %d entries", n)
		}
	}
	return s
}

func (s *scene) worker(name, processors string) *exec.Cmd {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(self, "worker", "--http", "127.0.0.1:0", "--processors", processors)
	cmd.Env = append(os.Environ(), "RUNNEL_WORKER_NAME="+name)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	url, logged := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(logged)
		serving := regexp.MustCompile(`http listening.*addr=(\S+)`)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				url <- "http://" + m[1]
			}
		}
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // one at least is dead
		<-logged
		_ = cmd.Wait()
	})
	select {
	case at := <-url:
		s.urls = append(s.urls, at)
		s.await(name+" to be ready", func() bool { return status(at+"/readyz") == 200 })
	case <-logged:
		s.t.Fatalf("worker %s ended", name)
	}
	return cmd
}

// awaitOwned waits until every partition has its assigned owner.
func (s *scene) awaitOwned() {
	s.t.Helper()
	s.await("every partition to be owned", func() bool {
		var owned int
		for _, m := range s.members() {
			owned += len(m.Owned)
			if len(m.Owned) != len(m.Assigned) {
				return false
			}
		}
		return owned == 20
	})
}

type member struct {
	Worker          string
	Executor        string
	Processor       string
	Alive           bool
	Owned, Assigned []int
}

func (s *scene) members() (list []member) {
	s.run(&list, "workers", "ls")
	return list
}

func (s *scene) batch(partition, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strconv.Itoa(partition) + "-a"
	}
	return keys
}

// send sends orders in one call and names their entry IDs.
func (s *scene) send(keys ...[]string) (ids []string) {
	s.t.Helper()
	var out []runnel.Outgoing[order]
	for _, partition := range keys {
		for _, key := range partition {
			out = append(out, runnel.Outgoing[order]{Record: order{key}})
		}
	}
	sent, err := s.orders.SendEvents(s.t.Context(), out...)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range sent {
		key := s.keys.Partition("orders", one.Partition)
		before, err := s.rdb.XRange(s.t.Context(), key, "-", one.ID).Result()
		if err != nil {
			s.t.Fatal(err)
		}
		s.names[fmt.Sprintf("%d %s", one.Partition, one.ID)] = fmt.Sprintf("<entry %d>", len(before))
		ids = append(ids, one.ID)
	}
	return ids
}

func (s *scene) delay(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		if _, err := s.orders.SendEvents(s.t.Context(), runnel.Outgoing[order]{Record: order{key}, After: time.Hour}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// count returns how many keys match a pattern, on all servers.
func (s *scene) count(pattern string) (n int) {
	for _, master := range s.masters {
		n += len(master.Client(s.t).Keys(s.t.Context(), pattern).Val())
	}
	return n
}

func (s *scene) first(partition int) string {
	return s.rdb.XRangeN(s.t.Context(), s.keys.Partition("orders", partition), "-", "+", 1).Val()[0].ID
}

// groups returns Redis' data on a processor's consumer groups, by partition.
func (s *scene) groups(processor string) (groups [4]redis.XInfoGroup) {
	for n := range groups {
		for _, g := range s.rdb.XInfoGroups(s.t.Context(), s.keys.Partition("orders", n)).Val() {
			if strings.HasPrefix(g.Name, processor+"@") {
				groups[n] = g
			}
		}
	}
	return groups
}

// lag uses Redis' counts; nothing was deleted when it is called.
func (s *scene) lag(processor string) (n int64) {
	for _, g := range s.groups(processor) {
		n += g.Lag + g.Pending
	}
	return n
}

// fetched returns how many events the live workers have read, which Redis does not know by position.
func (s *scene) fetched(processor string) float64 { return s.sum("fetched_events_total", processor) }

func (s *scene) run(into any, args ...string) []byte {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(s.t.Context(), s.app, append(args, "--output", "json"), strings.NewReader(""), &out, &errs)
	if code != 0 && args[0] != "check" && args[1] != "verify" {
		s.t.Fatalf("%q: code %d: %s", args, code, errs.String())
	}
	s.decode(out.Bytes(), into)
	return out.Bytes()
}

func (s *scene) await(what string, is func() bool) {
	s.t.Helper()
	redistest.Eventually(s.t, what, is)
}
