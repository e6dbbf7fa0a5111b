package store

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/delayqueue"
)

//go:embed lua/*.lua
var sources embed.FS

// source joins files of lua, named without their suffix.
func source(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		file, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // a name below is wrong
		}
		text.Write(file)
	}
	return text.String()
}

// script returns the script of the last file, behind the libraries that it uses.
func script(names ...string) *redis.Script {
	return redis.NewScript(source(names...))
}

// commit returns the script of a kind of commit: what few commits need is in a function.
func commit(kind string) *redis.Script {
	seldom := "local function seldom()\n" + source("prelude", "size", "present") + "return { is_there = is_there, never_had = never_had, words = words }\nend\n"
	return redis.NewScript(seldom + source("commit", kind))
}

var (
	takeoverScript  = script("prelude", "size", "present", "position", "takeover")
	refreshScript   = script("prelude", "size", "refresh")
	beatScript      = script("beat")
	taskScript      = script("task")
	ruleScript      = script("rule")
	obtainScript    = script("obtain")
	boundScript     = script("bound")
	unlockScript    = script("unlock")
	goneScript      = script("gone")
	commitScript    = commit("commit_position")
	changesScript   = commit("commit_changes")
	outboxScript    = script("outbox")
	hopScript       = script("prelude", "hop")
	continuesScript = script("prelude", "size", "present", "continues")
	rowScript       = script("row")
	clearScript     = script("clear")
	expireScript    = script("quiet", "expire")
	idleScript      = script("quiet", "idle")
	sendScript      = script("send")
	plainScript     = script("plain")
	trimScript      = script("prelude", "retention", "trim")
	forgetScript    = script("prelude", "retention", "forget")
	groupsScript    = script("prelude", "retention", "groups")
	roomScript      = script("prelude", "retention", "room")
	delayScript     = redis.NewScript(delayqueue.Lib + source("packed", "delay"))
	moveScript      = redis.NewScript(delayqueue.Lib + source("packed", "move"))
	headsScript     = redis.NewScript(delayqueue.Lib + source("heads"))
	swapScript      = script("swap")
	aliveScript     = script("alive")
	viewScript      = script("prelude", "retention", "size", "view")
	sharedScript    = script("shared")
	logScript       = script("prelude", "size", "log")
	pageScript      = script("prelude", "size", "page")
	resetScript     = script("prelude", "size", "present", "position", "reset")
	forgottenScript = script("prelude", "size", "present", "position", "forgotten")

	// Of parked events, dead letters and quarantined partitions.
	parkScript       = script("prelude", "tenure", "park")
	attemptScript    = script("attempt")
	settleScript     = script("settle")
	deadScript       = script("prelude", "tenure", "dead")
	beginScript      = script("begin")
	quarantineScript = script("quarantine")
	resumeScript     = script("resume")
	replayScript     = script("replay")
	reviveScript     = script("prelude", "revive")
	amendScript      = script("amend")
	dropScript       = script("drop")
	unlistScript     = script("unlist")
)

// groupsPerTrip is how many consumer groups the scripts of a round trip look at, at most.
const groupsPerTrip = 4096

// inTurn is how many scripts that look at all groups of a partition may share a round trip.
func inTurn(groups int) int { return min(max(groupsPerTrip/max(groups, 1), 1), partitionsPerTrip) }
