//go:build old

package main

import (
	"github.com/runnel-go/runnel"
	judged "github.com/runnel-go/runnel/internal/history"
)

const version = "old"

type (
	record  = judged.Record
	history = judged.Log
)

var open = judged.Open

func options(name string) *runnel.Options { return &runnel.Options{Worker: name} }

func processing() *runnel.ProcessorOptions {
	return &runnel.ProcessorOptions{
		LockExpiry: lease,
		Retry:      &runnel.Retry{Max: attempts, Order: runnel.RetryKey, Backoff: runnel.Backoff{First: minBackoff, Cap: maxBackoff}},
	}
}
