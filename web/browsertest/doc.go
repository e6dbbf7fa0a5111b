// Package browsertest tests the dashboard in a real browser. It is a module of its own, so
// that nobody who uses Runnel gets what it needs.
package browsertest
