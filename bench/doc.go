// Bench compares Runnel with loops written by hand with go-redis, and with other libraries, on a
// private redis-server.
//
//	go run . -quick
//	go run . -cases drain,latency -pairs 15
//
// Every measured side is a child process of its own: this program, started again
// with a Task, which prints one line of figures. The sides of a case take turns, and
// what is judged are the ratios of each turn. docs/benchmarks says how to read the
// report.
package main
