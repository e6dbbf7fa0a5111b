//go:build !old

package main

import (
	"github.com/runnel-go/runnel"
	judged "github.com/runnel-go/runnel/internal/test/history"
)

const version = "new"

type (
	record  = judged.Record
	history = judged.Log
)

var open = judged.Open

func options(name string) *runnel.Options { return &runnel.Options{WorkerName: name} }

func processing() *runnel.ProcessorOptions {
	return &runnel.ProcessorOptions{
		Lease: lease,
		Retry: &runnel.Retry{Max: attempts, Order: runnel.OrderKey, MinBackoff: minBackoff, MaxBackoff: maxBackoff},
	}
}
