//go:build race

package rebalance

// clusterSeeds is how many storms TestCluster plays: the race detector makes
// each several times as long.
const clusterSeeds = 60
