// Package cluster tests the framework on a Redis Cluster: real workers on real redis-servers whose
// slots move, replicas take over, and masters die or freeze. It holds tests only.
package cluster
