// Package chaos hurts real worker processes and real redis-servers and checks the history. It holds
// tests only:
//
//	go test ./internal/test/chaos                    a short run
//	RUNNEL_CHAOS_DURATION=60s go test …         a longer one
//	RUNNEL_CHAOS_SEED=7 go test …               the same choice of faults again
//	RUNNEL_CHAOS_FAULTS=kill,stop go test …     only these
//	RUNNEL_CHAOS_READS=position go test …       all workers read so (group, position), not each by the seed
//	go test -run /cluster …                     only this topology
//	RUNNEL_CHAOS_KEEP=1 go test …               keeps the history of a run that succeeded, too
//
// The test binary starts itself as the workers, each behind its own proxies. Faults of workers and
// of their links are the same everywhere (workerFaults); a topology is a deployment of Redis, and
// adds faults of its servers. While producers send, one fault follows the other. In the end
// internal/test/history checks whether order was kept, nothing was lost and every partition had one
// owner at a time, and internal/test/exact whether each event of an Atomic processor counted once. A long run is checked in rounds of two minutes. Between them the workers are
// replaced and everything comes to rest, so a long run needs no more memory and disk than a short
// one.
//
// A seed chooses the faults, their order and their lengths. Time and processes are real: the same
// seed is the same plan, not the same history. runneltest.Sim can replay a history.
package chaos
