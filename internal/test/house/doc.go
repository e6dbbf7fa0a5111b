// Package house tests the repository itself: imports, lengths of files and functions, and that the
// documents match the code.
package house
