// Package house holds the tests of the repository itself: what may import what, how long a
// file and a function may be, and that the documents name what there is.
package house
