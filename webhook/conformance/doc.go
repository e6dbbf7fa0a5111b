// Package conformance holds package webhook to what others have written: the library of Standard Webhooks. It is a module of its own,
// so that only its tests need that.
package conformance
