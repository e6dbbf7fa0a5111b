package server

import (
	"os"
	"strings"
	"testing"
)

func TestServersArePrivateAndLeaveNothing(t *testing.T) {
	first, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Start(t.Context(), "--appendonly", "yes")
	if err != nil {
		t.Fatal(err)
	}
	for server, want := range map[*Server]string{first: "no", second: "yes"} {
		if got := server.Client().ConfigGet(t.Context(), "appendonly").Val()["appendonly"]; got != want {
			t.Errorf("appendonly is %q, want %q", got, want)
		}
		if got := server.Client().ConfigGet(t.Context(), "dir").Val()["dir"]; got != server.dir {
			t.Errorf("the directory is %q, want %q", got, server.dir)
		}
		if !strings.HasPrefix(server.URL(), "redis://127.0.0.1:") {
			t.Errorf("the server is at %s", server.URL())
		}
	}
	if first.URL() == second.URL() {
		t.Errorf("both are at %s", first.URL())
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(second.dir); !os.IsNotExist(err) {
		t.Errorf("its directory is still there: %v", err)
	}
	if second.cmd.ProcessState == nil {
		t.Error("the server still runs")
	}
	if err := first.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

func TestServerThatCannotStart(t *testing.T) {
	_, err := Start(t.Context(), "--no-such-setting", "1")
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v", err)
	}
}
