// Package model explores the ownership protocol of docs/protocol.md state by state: everything that
// three executors, the server and the network between them may do, in any order, within bounds. It
// checks that no state breaks a promise, and that the goal can be reached from each. A broken state
// is reported with a shortest sequence of steps to it.
//
// It is a model and not the code: it repeats the scripts, the worker and package rebalance in
// steps. Only the functions that compute a membership are called themselves. A change of the
// protocol changes both.
//
// # Parts
//
//	explore.go, table.go  every state of a machine, breadth first, and the goal from each
//	rules.go              the rules, each of which can be switched off
//	owner.go              one partition: bounds, promises, goal
//	owner_state.go        what Redis stores, what executors believe, what is under way
//	owner_canon.go        states that differ in names only are one
//	owner_server.go       takeover.lua, refresh.lua, unlock.lua, XREADGROUP, XACK
//	owner_executor.go     what an executor does by itself
//	owner_replies.go      reads and acks: executed, answered, or of unknown outcome
//	owner_position.go     what is different of owners that read by position: commit.lua, continues.lua
//	owner_lease.go        takeovers and refreshes; faults of executors
//	owner_env.go          Redis' faults, late requests, the lock's expiry
//	owner_parked.go       events that fail: park.lua, settle.lua, and what follows a failover that has forgotten these
//	member*.go            the same for the membership
//
// # Requests
//
// A request is sent, executed, and answered, and between these anything else may
// happen. When its connection breaks the reply is lost; if it was not executed yet, it
// may be executed at any later moment, or never.
//
// # Time
//
// There is none, only what it decides: a lease ends before the lock that it stands for,
// unless the rule that makes it so is switched off. What a refresh grants counts from
// before it was sent: when the lock has expired meanwhile, its reply grants nothing.
//
// # Numbers
//
// Tenures and executor IDs are only ever compared for being the same, so numbers that
// nothing refers to are used again; executors are interchangeable. That makes the states
// finite, so that only faults need bounds. Of epochs the model keeps how many larger
// ones were given since.
package model
