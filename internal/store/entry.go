package store

// Names of the fields of an entry. Those that begin with "__" are the framework's in every stream;
// a codec that uses native Redis fields adds its own.
const (
	PayloadField = "data" // what the stream's codec wrote
	JSONField    = "json" // a JSON value instead, from a sender without the app's types
	KeyField     = "__key"
	HeaderPrefix = "__h." // before the name of a header
)
