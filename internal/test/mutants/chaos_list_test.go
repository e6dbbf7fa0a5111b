package mutants

import "github.com/runnel-go/runnel/internal/test/history"

const (
	plainLoad    = "TestFaults/standalone"
	deliveryLoad = "TestFaultsInDelivery/standalone"
)

// A chaosMutant is the program without one rule, for internal/test/chaos.
type chaosMutant struct {
	rule   string
	load   string        // the test that plays it
	faults string        // what is done, aimed at the rule
	bad    string        // how many of 40 000 events always fail, if not as many as usual
	want   history.Class // of the violation that the judge has to find
	quick  bool          // it is found within seconds
	edits  []edit        // none: those of the mutant of this rule
}

// An edit replaces a text that stands exactly once in a file.
type edit struct{ file, old, new string }

// chaosMutants are programs without a rule that internal/test/chaos has to notice: under
// these faults its judge finds a violation of this class. They are the judge's own
// test, on histories of real processes.
var chaosMutants = []chaosMutant{
	{
		rule: "an event is acked after its handler", load: plainLoad, faults: "kill,term", want: history.ClassLoss, quick: true,
		edits: []edit{{"internal/redisconn/reader.go", "Group: group, Consumer: consumer, Streams: args, Count: int64(count), Block: blockArgument(block)}", "Group: group, Consumer: consumer, Streams: args, Count: int64(count), Block: blockArgument(block), NoAck: true}"}},
	},
	{
		rule: "unacked events are never trimmed", load: plainLoad, faults: "kill,stop", want: history.ClassLoss, quick: true,
		edits: []edit{
			{"internal/store/lua/plain.lua", "local id = call('XADD', log, '*', name, ARGV[v])", "local id = call('XADD', log, 'MAXLEN', 20, '*', name, ARGV[v])"},
		},
	},
	{
		rule: "a dead letter is made in one step with the ack", load: deliveryLoad, faults: "kill,term", bad: "2000", want: history.ClassRepeat, quick: true,
		edits: []edit{
			{"internal/store/lua/dead.lua", "local parked = redis.call('HDEL', KEYS[3], ARGV[3])\nredis.call('HDEL', KEYS[4], ARGV[3])", "local parked = redis.call('HEXISTS', KEYS[3], ARGV[3])"},
			{"internal/retryqueue/queue_fail.go", "	r.lanes.remove(s.ID)\n	r.report.dead(ctx, &s)", "	time.Sleep(100 * time.Millisecond)\n	if err := r.lanes.drop(s.ID); err != nil {\n		return err\n	}\n	r.report.dead(ctx, &s)"},
		},
	},
	{
		rule: "the groups of old owners are destroyed", load: plainLoad, faults: "kill,term,join", want: history.ClassOwner, quick: true,
	},
	{
		rule: "nothing is due before its time", load: deliveryLoad, faults: "join,term", want: history.ClassEarly,
	},
	{
		rule: "the lease is looked at before each delivery", load: plainLoad, faults: "stop", want: history.ClassOwner,
	},
	{
		rule: "sends are not repeated by the client", load: plainLoad, faults: "cut,held-replies", want: history.ClassResend,
	},
	{
		rule: "a new owner reads the rules before its first event", load: deliveryLoad, faults: "term,join,kill", want: history.ClassHold,
	},
	{
		rule: "an attempt counts before it is made", load: deliveryLoad, faults: "kill,term", bad: "2000", want: history.ClassAttempts,
	},
}
