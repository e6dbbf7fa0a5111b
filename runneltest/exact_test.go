package runneltest_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/runnel-go/runnel/internal/history"
)

// historyVariable names a file for the history of the last storm that was played.
const historyVariable = "RUNNEL_SIM_HISTORY"

func writeHistory(t *testing.T, path string, records []history.Record) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
}
