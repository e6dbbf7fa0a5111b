//go:build !race

package rebalance

// clusterSeeds is how many storms TestCluster plays.
const clusterSeeds = 240
