package store

import (
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/delayqueue"
)

//go:embed lua/prelude.lua
var prelude string

//go:embed lua/retention.lua
var retention string

//go:embed lua/size.lua
var sizeLib string

//go:embed lua/tenure.lua
var tenureLib string

//go:embed lua/position.lua
var positionLib string

//go:embed lua/takeover.lua
var takeoverSource string

//go:embed lua/refresh.lua
var refreshSource string

//go:embed lua/beat.lua
var beatSource string

//go:embed lua/task.lua
var taskSource string

//go:embed lua/rule.lua
var ruleSource string

//go:embed lua/obtain.lua
var obtainSource string

//go:embed lua/bound.lua
var boundSource string

//go:embed lua/unlock.lua
var unlockSource string

//go:embed lua/send.lua
var sendSource string

//go:embed lua/plain.lua
var plainSource string

//go:embed lua/packed.lua
var packedLib string

//go:embed lua/delay.lua
var delaySource string

//go:embed lua/move.lua
var moveSource string

//go:embed lua/heads.lua
var headsSource string

//go:embed lua/trim.lua
var trimSource string

//go:embed lua/forget.lua
var forgetSource string

//go:embed lua/groups.lua
var groupsSource string

//go:embed lua/room.lua
var roomSource string

//go:embed lua/swap.lua
var swapSource string

//go:embed lua/alive.lua
var aliveSource string

//go:embed lua/view.lua
var viewSource string

//go:embed lua/shared.lua
var sharedSource string

//go:embed lua/log.lua
var logSource string

//go:embed lua/page.lua
var pageSource string

//go:embed lua/reset.lua
var resetSource string

//go:embed lua/park.lua
var parkSource string

//go:embed lua/attempt.lua
var attemptSource string

//go:embed lua/settle.lua
var settleSource string

//go:embed lua/gone.lua
var goneSource string

//go:embed lua/dead.lua
var deadSource string

//go:embed lua/begin.lua
var beginSource string

//go:embed lua/quarantine.lua
var quarantineSource string

//go:embed lua/resume.lua
var resumeSource string

//go:embed lua/replay.lua
var replaySource string

//go:embed lua/revive.lua
var reviveSource string

//go:embed lua/amend.lua
var amendSource string

//go:embed lua/drop.lua
var dropSource string

//go:embed lua/unlist.lua
var unlistSource string

//go:embed lua/forgotten.lua
var forgottenSource string

var (
	takeoverScript  = redis.NewScript(prelude + sizeLib + positionLib + takeoverSource)
	refreshScript   = redis.NewScript(prelude + sizeLib + refreshSource)
	beatScript      = redis.NewScript(beatSource)
	taskScript      = redis.NewScript(taskSource)
	ruleScript      = redis.NewScript(ruleSource)
	obtainScript    = redis.NewScript(obtainSource)
	boundScript     = redis.NewScript(boundSource)
	unlockScript    = redis.NewScript(unlockSource)
	goneScript      = redis.NewScript(goneSource)
	sendScript      = redis.NewScript(sendSource)
	plainScript     = redis.NewScript(plainSource)
	trimScript      = redis.NewScript(prelude + retention + trimSource)
	forgetScript    = redis.NewScript(prelude + retention + forgetSource)
	groupsScript    = redis.NewScript(prelude + retention + groupsSource)
	roomScript      = redis.NewScript(prelude + retention + roomSource)
	delayScript     = redis.NewScript(delayqueue.Lib + packedLib + delaySource)
	moveScript      = redis.NewScript(delayqueue.Lib + packedLib + moveSource)
	headsScript     = redis.NewScript(delayqueue.Lib + headsSource)
	swapScript      = redis.NewScript(swapSource)
	aliveScript     = redis.NewScript(aliveSource)
	viewScript      = redis.NewScript(prelude + retention + sizeLib + viewSource)
	sharedScript    = redis.NewScript(sharedSource)
	logScript       = redis.NewScript(prelude + sizeLib + logSource)
	pageScript      = redis.NewScript(prelude + sizeLib + pageSource)
	resetScript     = redis.NewScript(prelude + sizeLib + positionLib + resetSource)
	forgottenScript = redis.NewScript(prelude + sizeLib + positionLib + forgottenSource)

	// Of parked events, dead letters and quarantined partitions.
	parkScript       = redis.NewScript(prelude + tenureLib + parkSource)
	attemptScript    = redis.NewScript(attemptSource)
	settleScript     = redis.NewScript(settleSource)
	deadScript       = redis.NewScript(prelude + tenureLib + deadSource)
	beginScript      = redis.NewScript(beginSource)
	quarantineScript = redis.NewScript(quarantineSource)
	resumeScript     = redis.NewScript(resumeSource)
	replayScript     = redis.NewScript(replaySource)
	reviveScript     = redis.NewScript(reviveSource)
	amendScript      = redis.NewScript(amendSource)
	dropScript       = redis.NewScript(dropSource)
	unlistScript     = redis.NewScript(unlistSource)
)

// groupsPerTrip is how many consumer groups the scripts of a round trip look at, at most.
const groupsPerTrip = 4096

// inTurn is how many scripts that look at all groups of a partition may share a round trip, where there are so many.
func inTurn(groups int) int { return min(max(groupsPerTrip/max(groups, 1), 1), partitionsPerTrip) }
