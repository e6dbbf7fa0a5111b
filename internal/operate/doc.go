// Package operate is what operators do and read: the command line and the dashboard
// both call it, so that they cannot differ.
package operate
