package store

// Names of the fields of an entry. Those that begin with "__" are ours in every
// stream; a codec that uses native Redis fields writes others of its own.
const (
	PayloadField = "data" // what the stream's codec wrote
	JSONField    = "json" // a JSON value in its place: what a sender without the app's types writes
	KeyField     = "__key"
	HeaderPrefix = "__h." // before the name of a header
)
