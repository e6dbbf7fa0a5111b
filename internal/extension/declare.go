// Package extension is what packages above the root package add to an app. The root package sets its
// variables, which keeps it out of the exported API.
package extension

// Declare makes stream, a *runnel.Stream that runnel.NewStream has just made, one of an extension:
// one that takes no events from Send, with metadata of this kind. Kinds are those of store.Meta. parts
// returns what the extension tells apart in the stream, such as the stages of a set, and may be nil;
// it is called once registration is over, possibly often and concurrently, and must not block. Declare
// panics if stream is none, and after Run.
var Declare func(stream any, kind string, parts func() []string)
