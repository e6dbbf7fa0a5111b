// Package redistest starts real redis-server processes for tests, on free ports of 127.0.0.1, and does to them what
// operators fear: kill -9, freeze, restart, a full disk, the promotion of a replica that is behind, a failover by Sentinel.
//
// A missing redis-server fails the test and says what to install; nothing is ever skipped. Every process ends with
// its test, and on linux with the test process too, however that dies.
//
// Only tests import this package.
package redistest
