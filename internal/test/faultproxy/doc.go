// Package faultproxy is a TCP proxy in front of a Redis server that follows requests and replies and hurts exactly
// one of them: the n-th XREADGROUP loses its reply, the next takeover arrives after its sender is gone.
//
//	proxy := faultproxy.Start(t, server.Addr())
//	rule := proxy.On("XREADGROUP", 2).Do(faultproxy.CloseAfter)
//	… let a client of proxy.Addr() read …
//	rule.Wait(t)
//
// Each connection of a client has one connection to the server, so CLIENT ID, CLIENT KILL and blocking commands mean
// what they mean without the proxy. When a client goes, the server sees it go once everything the client sent was
// forwarded. Requests are matched with replies one by one, in order, for RESP2 and RESP3; pushes are no replies.
// A connection that subscribes, monitors or replicates is passed through from then on and only obeys what is
// done to all connections. CLIENT REPLY, which takes replies away, is not supported.
//
// Payloads are streamed; only a held request is kept in memory as a whole.
//
// Only tests import this package.
package faultproxy
