// Package browsertest tests the dashboard in a real browser. It is a module of its own, so
// that apps do not get its dependencies.
package browsertest
