package mutants

const (
	saveLua  = "internal/webhook/lua/save.lua"
	holdLua  = "internal/webhook/lua/hold.lua"
	ownerGo  = "webhook/owner.go"
	gone     = "TestHoldersGoWithThoseWhoNeedThem/"
	needed   = "TestLogsKeepWhatIsNeeded"
	countsOn = "TestWhatASaveCountsOn"
)

// Settings are read behind their version, or with the names of subscribers.
const (
	settingsBehind = `names, err := b.client.Retrying.HKeys(ctx, b.key("whconf", n)).Result()
		if err != nil {
			yield(nil, err)
			return
		}
		for some := range slices.Chunk(names, page) {
			all, err := b.read(ctx, n, some)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, s := range all {`
	settingsBefore = `texts, err := b.client.Retrying.HGetAll(ctx, b.key("whconf", n)).Result()
		if err != nil {
			yield(nil, err)
			return
		}
		for name := range texts {
			all, err := b.read(ctx, n, []string{name})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, s := range all {
				_ = slices.Index(all, s)
				s.Settings = &Settings{}
				_ = decode("subscriber", name, texts[name], s.Settings, &s.Settings.V)`
)

// webhookMutants are programs without one rule of webhook buses, by the package whose tests notice.
var webhookMutants = map[string][]mutant{
	"internal/delivery": {
		{"what is missing is counted", "internal/delivery/state.go", "s.Dropped += to.N - s.Settled[log].N - events", "", "TestManyDropped"},
	},
	"webhook": {
		{"numbers that are given again are noticed", "internal/delivery/window.go", "again := e.ID.N <= at.N && e.ID.MS > at.MS", "again := false", "TestALogThatGoesBackAlone"},
		{"a former owner saves nothing", saveLua, "local fenced = fence(KEYS[1], ARGV[1])", "local fenced = nil", countsOn},
		{"a batch begins under the settings that it counts on", saveLua, "elseif settings ~= '' and known[2] ~= settings then", "elseif false then", countsOn},
		{"a state replaces the one that it counts on", saveLua, "elseif known[1] ~= version then", "elseif false then", countsOn},
		{
			"a subscriber that is made anew has other versions", "internal/webhook/lua/swap.lua",
			"('%.0f'):format(clock[1] * 1000000 + clock[2])", "'0'", countsOn,
		},
		{
			"a batch is stored before its request", "webhook/send.go", "s.o.saver.add(one)",
			"add := func() { s.o.saver.add(one); s.o.mail.post(func() {}) }\n\tif batch == nil {\n\t\tadd()\n\t} else {\n\t\tgo func() { a := one.request(batch); one.request = func(*delivery.Batch) answer { return a }; add() }()\n\t}", "TestOwnersThatDie/kill",
		},
		{
			"settings have their version", "internal/webhook/subscribers.go",
			settingsBehind, settingsBefore, "TestAPauseWhileSubscribersAreRead",
		},
		{"reads of a subscriber do not overtake", ownerGo, "if o.reading || len(o.changed) == 0 {", "if len(o.changed) == 0 {", "TestReadsOfASubscriberKeepTheirOrder"},
		{"holders keep what they need", "internal/store/lua/holders.lua", "if not keep or before(id, keep) then keep, who, foreign = id, holders[i], false end", "", needed},
		{"a pin lasts", "internal/webhook/lua/settle.lua", "if at and", "if false and", needed},
		{"a removed subscriber has no pin", "internal/webhook/lua/settle.lua", "elseif at then", "elseif false then", gone + "removed_before_its_owner_knew_it"},
		{"pins are of one subscription", "internal/webhook/holders.go", "rand.Text()", "rand.Text()[:0]", "TestHoldersWhileOneIsRemoved/while_it_is_made_again"},
		{"a pin that was removed does not come back", "internal/webhook/lua/settle.lua", "local at = call('HGET', KEYS[1], ARGV[1])", "local at = call('HGET', KEYS[1], ARGV[1]) or '0-0'", "TestHoldersWhileOneIsRemoved/before_it_returns"},
		{"an owner replaces all pins", ownerGo, "h.urgent, h.pins = true, append(h.pins, span.Pin)", "h.urgent = h.pins != nil && span.Pin != \"\"", gone + "topic_that_ended_and_goes_on"},
		{"an owner takes over holders", ownerGo, "o.holds.of(name).urgent = true", "_ = name", gone + "removed_while_nobody_owned_it"},
		{"a former owner holds nothing", holdLua, "then return 0 end", "then local _ end", "TestAFormerOwnerHoldsNothing"},
		{"a topic that was lost is made again", "webhook/topics.go", "!done || t == nil {", "!done {", "TestAServerThatForgetsEverything"},
		{"holds need no memory", holdLua, "even_if_full(KEYS[1]) -- what it lets go takes more", "", needed},
	},
}
