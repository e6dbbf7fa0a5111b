package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/monotime"
)

const (
	redirections   = 5 // of one command
	triesOrdinary  = 4 // of one that may be repeated, when connections break
	firstAgain     = 10 * time.Millisecond
	movingPatience = time.Second // with a slot that moves, or that no node serves
)

// A clusterHook sends each command of a client to the cluster node that serves its key. A pipeline
// is split by node, and its parts are sent at the same time. WAIT, which has no key, goes along
// with each part and returns the least answer. Other commands without a key go to the node of the
// app's own keys.
//
// A redirection, MOVED or ASK, means that nothing was executed, and is followed. TRYAGAIN, while
// only some of a script's keys have moved, and CLUSTERDOWN mean the same, and are retried for a
// second. A command whose reply was lost is repeated only by a client that may repeat it, after a
// new look at the slots.
type clusterHook struct {
	k       *cluster
	repeat  bool
	lasting bool // it waits for replicas
}

// DialHook returns next: nothing is dialled.
func (r clusterHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends one command.
func (r clusterHook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.run(ctx, []redis.Cmder{cmd})
		return cmd.Err()
	}
}

// ProcessPipelineHook sends a pipeline.
func (r clusterHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) > 2 && cmds[0].Name() == "multi" {
			return r.transaction(ctx, cmds[1:len(cmds)-1])
		}
		r.run(ctx, cmds)
		for _, cmd := range cmds {
			if err := cmd.Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

// An item is a command on its way.
type item struct {
	cmd    redis.Cmder
	n      *node // where it goes, or went
	asking bool  // its slot is on its way to n
	told   bool  // the cluster redirected it to n
}

// A nodeBatch is the part of a pipeline that goes to one node.
type nodeBatch struct {
	n      *node
	asking bool
	cmds   []redis.Cmder
	waits  []redis.Cmder // one for each WAIT of the pipeline
}

// run runs commands; each then holds its reply or its error.
func (r clusterHook) run(ctx context.Context, cmds []redis.Cmder) {
	waits, rest := apart(cmds)
	least := make([]*int64, len(waits))
	again := attempts{began: time.Now()}
	for len(rest) > 0 || len(waits) > 0 && again.rounds == 0 {
		legs := r.batches(ctx, rest)
		if len(rest) == 0 {
			legs = r.toAppNode(ctx, waits)
		}
		for _, l := range legs {
			l.waits = copies(ctx, waits)
		}
		r.send(ctx, legs)
		for _, l := range legs {
			for w := range l.waits {
				if l.settled() {
					takeLeast(waits[w], l.waits[w], &least[w])
				}
			}
		}
		rest = r.retryable(ctx, rest, &again)
		if len(rest) > 0 && !again.pause(ctx) {
			giveUp(rest)
			return
		}
		again.rounds++
	}
}

// giveUp sets the error of commands that were redirected too often: none was executed.
func giveUp(items []item) {
	for _, it := range items {
		if _, addr, _ := redirection(it.cmd.Err()); addr != "" {
			it.cmd.SetErr(&dialError{fmt.Errorf("slot keeps moving between nodes: %v", it.cmd.Err())}) // as text: it is no refusal
		}
	}
}

// apart separates the WAITs from the other commands.
func apart(cmds []redis.Cmder) (waits []redis.Cmder, rest []item) {
	rest = make([]item, 0, len(cmds))
	for _, cmd := range cmds {
		if cmd.Name() == "wait" {
			waits = append(waits, cmd)
		} else {
			rest = append(rest, item{cmd: cmd})
		}
	}
	return waits, rest
}

func copies(ctx context.Context, waits []redis.Cmder) []redis.Cmder {
	out := make([]redis.Cmder, len(waits))
	for i, w := range waits {
		out[i] = redis.NewCmd(ctx, w.Args()...)
	}
	return out
}

// settled reports whether the node has executed or finally refused any command of the batch. If all
// commands go elsewhere, its answer about its replicas does not matter.
func (l *nodeBatch) settled() bool {
	return len(l.cmds) == 0 || slices.ContainsFunc(l.cmds, func(cmd redis.Cmder) bool {
		_, addr, _ := redirection(cmd.Err())
		return addr == "" && !ReplyHas(cmd.Err(), "TRYAGAIN", "CLUSTERDOWN")
	})
}

// takeLeast stores a node's answer to a WAIT if it is the least; least is nil before the first.
func takeLeast(wait, answer redis.Cmder, least **int64) {
	n, err := answer.(*redis.Cmd).Int64()
	if err != nil {
		wait.SetErr(err)
		return
	}
	if *least == nil || n < **least {
		*least = &n
	}
	switch wait := wait.(type) {
	case *redis.Cmd:
		wait.SetVal(**least)
	case *redis.IntCmd:
		wait.SetVal(**least)
	}
}

// batches splits commands by node.
func (r clusterHook) batches(ctx context.Context, items []item) (legs []*nodeBatch) {
	for i := range items {
		it := &items[i]
		if !it.told {
			var err error
			if it.n, err = r.k.of(ctx, r.slot(it.cmd)); err != nil {
				it.cmd.SetErr(err)
				continue
			}
		}
		at := slices.IndexFunc(legs, func(l *nodeBatch) bool { return l.n == it.n && l.asking == it.asking })
		if at < 0 {
			at, legs = len(legs), append(legs, &nodeBatch{n: it.n, asking: it.asking})
		}
		legs[at].cmds = append(legs[at].cmds, it.cmd)
	}
	return legs
}

// toAppNode sends commands without a key.
func (r clusterHook) toAppNode(ctx context.Context, waits []redis.Cmder) []*nodeBatch {
	n, err := r.k.of(ctx, r.k.home)
	if err != nil {
		for _, w := range waits {
			w.SetErr(err)
		}
		return nil
	}
	return []*nodeBatch{{n: n}}
}

// slot returns the slot of a command.
func (r clusterHook) slot(cmd redis.Cmder) int {
	if key, ok := keyOf(cmd.Args()); ok {
		return Slot(key)
	}
	return r.k.home
}

// send sends the batches at the same time.
func (r clusterHook) send(ctx context.Context, legs []*nodeBatch) {
	var wg sync.WaitGroup
	for _, l := range legs[:max(len(legs)-1, 0)] {
		wg.Go(func() { l.send(ctx, r.of(l.n)) })
	}
	if len(legs) > 0 {
		l := legs[len(legs)-1]
		l.send(ctx, r.of(l.n))
	}
	wg.Wait()
}

// of returns the hook's client of a node.
func (r clusterHook) of(n *node) *redis.Client {
	if r.lasting {
		return n.lasting
	}
	return n.rdb
}

func (l *nodeBatch) send(ctx context.Context, rdb *redis.Client) {
	for _, cmd := range l.cmds {
		cmd.SetErr(nil) // of a previous round: go-redis keeps the first error of a command
	}
	if len(l.cmds) == 1 && len(l.waits) == 0 && !l.asking {
		_ = rdb.Process(ctx, l.cmds[0]) // it carries its error
		return
	}
	pipe := rdb.Pipeline()
	for _, cmd := range l.cmds {
		if l.asking {
			pipe.Do(ctx, "ASKING")
		}
		_ = pipe.Process(ctx, cmd) // only queues
	}
	for _, w := range l.waits {
		_ = pipe.Process(ctx, w)
	}
	pipe.Exec(ctx) // every command carries its error
}

// retryable returns the commands to send again, with their nodes.
func (r clusterHook) retryable(ctx context.Context, items []item, again *attempts) []item {
	rest, broken := items[:0], []item(nil)
	for _, it := range items {
		err := it.cmd.Err()
		if err == nil || errors.Is(err, redis.Nil) {
			continue
		}
		switch slot, addr, asking := redirection(err); {
		case addr != "":
			it.n, it.asking, it.told = r.k.node(r.k.addrOf(addr, it.n.addr)), asking, true
			if !asking {
				r.k.moved(slot, it.n)
			}
			again.redirected = true
			rest = append(rest, it)
		case ReplyHas(err, "TRYAGAIN"):
			again.wait = true
			rest = append(rest, it)
		case ReplyHas(err, "CLUSTERDOWN"):
			r.k.lookSoon()
			again.wait, it.told = true, false
			rest = append(rest, it)
		case !IsReply(err): // the connection broke, or there was none
			r.k.lookSoon()
			if (r.repeat || notSent(err)) && ctx.Err() == nil {
				it.told, it.asking = false, false
				broken = append(broken, it)
			}
		}
	}
	return append(rest, r.afterBreak(ctx, broken, again)...)
}

// afterBreak looks at the slots again, and returns the commands to send again after their
// connection broke: one that may have been executed, only if this client may repeat it.
func (r clusterHook) afterBreak(ctx context.Context, broken []item, again *attempts) []item {
	if len(broken) == 0 {
		return nil
	}
	if again.broken++; again.broken >= triesOrdinary || r.k.look(ctx) != nil {
		return nil
	}
	if r.repeat {
		again.wait = true
		return broken
	}
	return slices.DeleteFunc(broken, func(it item) bool {
		n := r.k.slots[r.slot(it.cmd)].Load()
		return n == nil || n == it.n // no other node serves the slot
	})
}

// attempts bound how often a pipeline goes again.
type attempts struct {
	began      time.Time
	rounds     int
	redirects  int
	broken     int
	redirected bool
	wait       bool
}

// pause waits before the next round, and reports whether there is one.
func (a *attempts) pause(ctx context.Context) bool {
	redirected, wait := a.redirected, a.wait
	a.redirected, a.wait = false, false
	if redirected {
		a.redirects++
	}
	if a.redirects > redirections || wait && time.Since(a.began) > movingPatience {
		return false
	}
	if !wait {
		return ctx.Err() == nil
	}
	return monotime.Sleep(ctx, firstAgain<<min(a.rounds, 4))
}

// redirection parses "MOVED 3999 10.0.0.1:6381" and "ASK 3999 ::1:6381".
func redirection(err error) (slot int, addr string, asking bool) {
	if !IsReply(err) {
		return 0, "", false
	}
	words := strings.Fields(err.Error())
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return 0, "", false
	}
	slot, bad := strconv.Atoi(words[1])
	colon := strings.LastIndexByte(words[2], ':')
	if bad != nil || colon < 0 || slot < 0 || slot >= slotCount {
		return 0, "", false
	}
	host := strings.TrimSuffix(strings.TrimPrefix(words[2][:colon], "["), "]") // Redis writes no brackets
	return slot, net.JoinHostPort(host, words[2][colon+1:]), words[0] == "ASK"
}

// transaction runs all commands of one slot, or none. It is repeated if the node did not serve the
// slot, or is losing it, for then none was executed.
func (r clusterHook) transaction(ctx context.Context, cmds []redis.Cmder) error {
	again := attempts{began: time.Now()}
	for {
		n, err := r.k.of(ctx, r.slot(cmds[0]))
		if err != nil {
			return err
		}
		pipe := r.of(n).TxPipeline()
		for _, cmd := range cmds {
			cmd.SetErr(nil)
			_ = pipe.Process(ctx, cmd) // only queues
		}
		_, err = pipe.Exec(ctx)
		for _, cmd := range cmds {
			slot, addr, asking := redirection(cmd.Err())
			if addr != "" && !asking {
				r.k.moved(slot, r.k.node(r.k.addrOf(addr, n.addr)))
			}
			again.redirected = again.redirected || addr != ""
			again.wait = again.wait || asking || ReplyHas(cmd.Err(), "TRYAGAIN", "CLUSTERDOWN")
		}
		if !again.redirected && !again.wait || !again.pause(ctx) {
			return err
		}
		again.rounds++
	}
}
