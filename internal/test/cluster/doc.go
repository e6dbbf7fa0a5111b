// Package cluster shows that what the framework promises on one server it keeps on a
// Redis Cluster: real workers on real redis-servers, of which slots move, replicas take
// over, and masters die or stand still. It holds tests only.
package cluster
