package model

// A Rule is one of the protocol that can be switched off, to see what it is for.
type Rule uint64

// The rules of ownership.
const (
	FenceTakeover Rule = 1 << iota
	FenceTenure
	TakeoverOnce
	OldGroupsGo
	OwnGroupAnew
	OldestPending
	EpochStored
	EpochClock
	EpochSeen
	LeaseBeforeDelivery
	LeaseMargin
	LeaseFromRequest
	RefreshTakesNothing
	RefreshStoresFloor
	RefreshComparesTenure
	FloorWithTakeover
	StraysAreAcked
	OtherStraysAreATakeover
	GoingBackIsATakeover
	GroupAnew
	KillBeforeHistory
	HistoryBeforeNew
	RefusedComesAgain
	ReleaseAwaitsRead
	ReleaseAwaitsFunction
	ReleaseFlushes
	ReleaseComparesTenure
	ShortIsAQuestion
	AcksAgain
	NewIDAfterLoss

	// The rules of membership.
	SwapComparesAll
	SwapComparesContent
	BeatBeforeJoin
	ReapsTheDead
	ReapLooksAgain
	BeatReadsMembership
	BeatIsAHint
	LoadOvertaken
	ReapOvertaken
	StoredIsTruth
	AbsentRejoins
	LocksDecide

	ruleEnd
)

// ruleTexts say what each rule is.
var ruleTexts = map[Rule]string{
	FenceTakeover:           "a takeover checks that the lock is its executor's",
	FenceTenure:             "a takeover checks that the lock is its tenure's",
	TakeoverOnce:            "a takeover that is repeated in its tenure changes nothing",
	OldGroupsGo:             "a takeover destroys the groups of earlier owners",
	OwnGroupAnew:            "a takeover makes the executor's own group of an earlier tenure anew",
	OldestPending:           "the floor is before the oldest pending entry",
	EpochStored:             "an epoch is larger than the stored one",
	EpochClock:              "an epoch is at least the server's time",
	EpochSeen:               "an epoch is larger than all that the caller ever saw",
	LeaseBeforeDelivery:     "the lease is looked at before each delivery",
	LeaseMargin:             "the lease ends a margin before the lock",
	LeaseFromRequest:        "the lease counts from before the request",
	RefreshTakesNothing:     "a refresh never takes a lost lock again",
	RefreshStoresFloor:      "a refresh stores the floor, which counts where there is no group",
	RefreshComparesTenure:   "a refresh finds out that a failover forgot the takeover",
	FloorWithTakeover:       "no floor is stored where a failover forgot the takeover",
	StraysAreAcked:          "what is pending though it was acked is acked again",
	OtherStraysAreATakeover: "where a part of that was not acked in this tenure none of it is, and the partition is taken over again",
	GoingBackIsATakeover:    "a read that goes back ends the tenure, and the partition is taken over again",
	GroupAnew:               "a group that is gone is made anew under a new tenure",
	KillBeforeHistory:       "a read of unknown outcome is ended before the history is read",
	HistoryBeforeNew:        "after a read of unknown outcome the history is read before anything new",
	RefusedComesAgain:       "what a buffer refused is read from the history before anything new",
	ReleaseAwaitsRead:       "a release waits until no read can be executed any more",
	ReleaseAwaitsFunction:   "a lock is not given back while the function runs",
	ReleaseFlushes:          "a release waits for the acks",
	ReleaseComparesTenure:   "a release deletes only the lock of its tenure",
	ShortIsAQuestion:        "a short count of acks is a question",
	AcksAgain:               "acks of unknown outcome are sent again",
	NewIDAfterLoss:          "an executor that lost a partition goes on under a new ID",

	SwapComparesAll:     "a change of the membership compares the old value",
	SwapComparesContent: "it compares the whole of it, not its number",
	BeatBeforeJoin:      "the heartbeat is there before the join",
	ReapsTheDead:        "members without a heartbeat are removed",
	ReapLooksAgain:      "heartbeats are looked at again in the change that removes a member",
	BeatReadsMembership: "each heartbeat reads the membership",
	BeatIsAHint:         "what a heartbeat has read is loaded again, not followed",
	LoadOvertaken:       "a load that a change of one's own overtook is not followed",
	ReapOvertaken:       "a removal that a load of one's own overtook is not followed",
	StoredIsTruth:       "the stored membership is the truth whatever its number",
	AbsentRejoins:       "who is absent from the membership releases all and joins again",
	LocksDecide:         "an assigned partition is processed only under its lock",
}

// String says what the rule is.
func (r Rule) String() string { return ruleTexts[r] }
