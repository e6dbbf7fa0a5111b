// Package stage keeps entities in Redis and runs small functions over each of them, whenever it changed
// or its time has come, until no function wants anything any more.
//
//	listings := stage.New(app, "listings", func(l Listing) string { return l.ID }, nil)
//	listings.Stage("price", func(l Listing) bool { return l.Price == 0 }, price, nil)
//	err := listings.Put(ctx, Listing{ID: "42"})
//
// A set holds the entities of one type. A stage is a named function over a set. A visit is an entity that
// waits for a stage, not before a time; there is at most one per stage and entity, and the earlier time
// wins. After each change of an entity all stages are asked whether they want to visit it: that is a
// touch.
//
// Functions run one at a time per entity, in whichever worker owns the entity's partition. A worker that
// was paused and lost the partition cannot store anything any more. What a function stores, and what is
// visited next, changes in one step. Functions are called again after an error, a crash, and where
// the entity was saved elsewhere meanwhile, so make their effects idempotent.
package stage
