// Package records reads the records of a stream's entries as JSON: with the app's types, or,
// without them, as far as the metadata allows.
package records
