// Package redistest starts real redis-server processes for tests, on free ports of 127.0.0.1, and does to them what
// operators fear: kill -9, freeze, restart, a full disk, the promotion of a replica that is behind, a failover by Sentinel.
//
// A test that starts one is skipped unless all tests run, see internal/test/tier; then a missing redis-server fails it
// and says what to install. Eventually is how tests wait for a state, with or without a server. Every process ends with
// its test, and on linux with the test process too, however that dies.
//
// Only tests import this package, and programs that measure or record on a server of their own, by Launch.
package redistest
