// Package rebalance shares the partitions of a stream among the members of a
// processor.
package rebalance
