// Package upgrade replaces the workers of an app by those of another version while events are
// sent, and back. It holds tests only:
//
//	RUNNEL_TEST=full go test ./internal/test/upgrade
//
// The earlier version is a commit of this repository, whose sources git archive takes out of
// its history. testdata/worker is a worker and a sender of the app in one program, which is
// built against either version: what the versions name differently is in its old.go and new.go.
//
// Senders of both versions send all the time. Some events fail once. Others fail for as long
// as one version processes them: its retries park them, and only the other version can
// complete them. In the end internal/test/history judges what all processes wrote down.
package upgrade
