package redistest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// TestServerDiesWithTheTestProcess runs itself in a process of its own, and kills that.
func TestServerDiesWithTheTestProcess(t *testing.T) {
	tier.Server(t)
	const variable = "TESTREDIS_VICTIM"
	if os.Getenv(variable) != "" {
		fmt.Printf("pid=%d\n", Start(t).PID())
		<-t.Context().Done()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "pid="); found {
			pid, _ = strconv.Atoi(text)
		}
	}
	if pid == 0 || syscall.Kill(pid, 0) != nil {
		t.Fatalf("no server runs under process %d", pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !Within(Patience, func() bool { return !alive(pid) }) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Error("the server outlived the test process")
	}
}

// alive is false for a zombie too: reaping an orphan is not this test's business.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
