package runnel

import "github.com/cespare/xxhash/v2"

// A Partitioner maps keys to partitions. All producers of a stream must use the same one:
// its name is stored in the stream's metadata, and compared.
type Partitioner struct {
	// Name changes whenever what Func returns changes.
	Name string
	// Func returns the partition of a key, from 0 to partitions-1. The result depends
	// only on the arguments. Func is called concurrently; partitions is at least 1.
	Func func(key string, partitions int) int
}

// XXHash is the default Partitioner: xxh64 of the key's bytes with seed 0, as an
// unsigned number, modulo the number of partitions.
var XXHash = &Partitioner{
	Name: "xxh64",
	Func: func(key string, partitions int) int {
		return int(xxhash.Sum64String(key) % uint64(partitions))
	},
}
