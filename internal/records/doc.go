// Package records reads what the entries of a stream hold, as JSON: by the app's types, or
// without them as far as the metadata tells.
package records
