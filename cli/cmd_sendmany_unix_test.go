//go:build linux || darwin

package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A named pipe can be opened only once, and a read from it may block for ever.
func TestSendManyFromANamedPipe(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		s := newShop(t, &runnel.StreamOptions{KeyField: "customer"})
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		command := s.start("sendmany", "orders", path)
		wrote := make(chan error, 1)
		end := make(chan struct{})
		go func() {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				defer f.Close()
				_, err = f.WriteString(jsonLines(1))
			}
			wrote <- err
			<-end
		}()
		if err := receive(t, wrote, "write"); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(redistest.Patience); s.count() == 0; <-time.After(2 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nothing was sent")
			}
		}
		if interrupted {
			command.stop().want(t, 1, "sent 1, failed 0", "interrupted: nothing after ")
			close(end)
			continue
		}
		close(end)
		receive(t, command.done, "end").want(t, 0, "sent 1, failed 0\n", "")
	}
}
