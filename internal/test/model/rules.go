package model

import "math/bits"

// A Rule is one of the protocol that can be switched off, to see what it is for. Several rules together are a Rule too.
type Rule uint64

// ruleTexts say what each rule is, in the order of their bits.
var ruleTexts []string

func rule(text string) Rule {
	ruleTexts = append(ruleTexts, text)
	return 1 << (len(ruleTexts) - 1)
}

// The rules of ownership.
var (
	FenceTakeover           = rule("a takeover checks that the lock is its executor's")
	FenceTenure             = rule("a takeover checks that the lock is its tenure's")
	TakeoverOnce            = rule("a takeover that is repeated in its tenure changes nothing")
	OldGroupsGo             = rule("a takeover destroys the groups of earlier owners")
	OwnGroupAnew            = rule("a takeover makes the executor's own group of an earlier tenure anew")
	OldestPending           = rule("the floor is before the oldest pending entry")
	EpochStored             = rule("an epoch is larger than the stored one")
	EpochClock              = rule("an epoch is at least the server's time")
	EpochSeen               = rule("an epoch is larger than all that the caller ever saw")
	LeaseBeforeDelivery     = rule("the lease is looked at before each delivery")
	LeaseMargin             = rule("the lease ends a margin before the lock")
	LeaseFromRequest        = rule("the lease counts from before the request")
	RefreshTakesNothing     = rule("a refresh never takes a lost lock again")
	RefreshStoresFloor      = rule("a refresh stores the floor, which counts where there is no group")
	RefreshComparesTenure   = rule("a refresh finds out that a failover forgot the takeover")
	FloorWithTakeover       = rule("no floor is stored where a failover forgot the takeover")
	StraysAreAcked          = rule("what is pending though it was acked is acked again")
	OtherStraysAreATakeover = rule("where a part of that was not acked in this tenure none of it is, and the partition is taken over again")
	GoingBackIsATakeover    = rule("a read that goes back ends the tenure, and the partition is taken over again")
	GroupAnew               = rule("a group that is gone is made anew under a new tenure")
	KillBeforeHistory       = rule("a read of unknown outcome is ended before the history is read")
	HistoryBeforeNew        = rule("after a read of unknown outcome the history is read before anything new")
	RefusedComesAgain       = rule("what a buffer refused is read from the history before anything new")
	ReleaseAwaitsRead       = rule("a release waits until no read can be executed any more")
	ReleaseAwaitsFunction   = rule("a lock is not given back while the function runs")
	ReleaseFlushes          = rule("a release waits for the acks")
	ReleaseComparesTenure   = rule("a release deletes only the lock of its tenure")
	ShortIsAQuestion        = rule("a short count of acks is a question")
	AcksAgain               = rule("acks of unknown outcome are sent again")
	NewIDAfterLoss          = rule("an executor that lost a partition goes on under a new ID")

	// Those of parked events.
	MoveComparesTenure    = rule("a move of an event compares the tenure")
	ParksPending          = rule("what is not in the partition any more is not parked")
	TakenOutAside         = rule("what is taken out behind what is pending is set aside for the next owner")
	ParkedAreAside        = rule("without the group a takeover sets aside all that is parked")
	ForgottenReadsAreRead = rule("where a group was read less far than its owner has read the partition is taken over again with it")
	ReadsParkedAgain      = rule("over a new connection what is parked is read again, and the partition is taken over again if that is something else")
	CommitFindsTakenOut   = rule("a commit checks that what was taken out is")

	// Those of owners that read by position.
	BeginsAtPosition      = rule("a takeover begins at the stored position")
	CommitsFromOne        = rule("a takeover counts commits from 1 on")
	CommitComparesTenure  = rule("a commit checks that the partition is its tenure's")
	CommitOnce            = rule("a commit that is repeated, or late, changes nothing")
	CommitAsItWas         = rule("a commit of unknown outcome is repeated unchanged")
	CommitLooks           = rule("a commit whose entry is not there passes no other one")
	CommitStaysWithin     = rule("a commit stays within what the partition ever had")
	Continues             = rule("after a new connection what was read last must be done or there")
	RefreshLeavesPosition = rule("a refresh leaves the position alone")
	LostCommitIsATakeover = rule("where a refresh finds a position before the confirmed one the partition is taken over again")

	// The rules of membership.
	SwapComparesAll     = rule("a change of the membership compares the old value")
	SwapComparesContent = rule("it compares the whole of it, not its number")
	BeatBeforeJoin      = rule("the heartbeat is there before the join")
	ReapsTheDead        = rule("members without a heartbeat are removed")
	ReapLooksAgain      = rule("heartbeats are looked at again in the change that removes a member")
	BeatReadsMembership = rule("each heartbeat reads the membership")
	BeatIsAHint         = rule("what a heartbeat has read is loaded again, not followed")
	LoadOvertaken       = rule("a load that a change of one's own overtook is not followed")
	ReapOvertaken       = rule("a removal that a load of one's own overtook is not followed")
	StoredIsTruth       = rule("the stored membership is the truth whatever its number")
	AbsentRejoins       = rule("who is absent from the membership releases all and joins again")
	LocksDecide         = rule("an assigned partition is processed only under its lock")
)

// String returns the text of the rule.
func (r Rule) String() string { return ruleTexts[bits.TrailingZeros64(uint64(r))] }
