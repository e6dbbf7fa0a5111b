package upgrade

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const (
	root    = "../../.."
	program = "internal/test/upgrade/testdata/worker"
)

// The versions of the program.
const (
	older = "old"
	newer = "new"
)

// earlier is the commit of the old version: before the public names were changed.
const earlier = "91691d32bbec571349a4d7f6850a6f57f5343c33"

func programs(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	out := map[string]string{older: filepath.Join(dir, older), newer: filepath.Join(dir, newer)}
	tree := checkout(t)
	var wg sync.WaitGroup
	wg.Go(func() { build(t, tree, out[older], "-tags", "old") })
	wg.Go(func() { build(t, root, out[newer]) })
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// checkout takes the sources of the old version out of the history and adds the program.
func checkout(t *testing.T) (dir string) {
	t.Helper()
	if out, err := git(t, "cat-file", "-e", earlier+"^{commit}"); err != nil {
		t.Fatalf("the old version, commit %s, is not in the history of this clone: git fetch --unshallow\n%s", earlier, out)
	}
	archive := filepath.Join(t.TempDir(), "old.zip")
	if out, err := git(t, "archive", "--format", "zip", "--output", archive, earlier, ".", ":(exclude,glob)**/testdata/**"); err != nil {
		t.Fatalf("git archive: %v\n%s", err, out)
	}
	files, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	dir = t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, program), os.DirFS(filepath.Join(root, program))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func git(t *testing.T, args ...string) (out []byte, err error) {
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = root
	return cmd.CombinedOutput()
}

// build builds the program in a tree of sources. With -trimpath the build cache serves every
// checkout.
func build(t *testing.T, tree, binary string, flags ...string) {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", binary}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+program)...)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go build in %s: %v\n%s", tree, err, out)
	}
}
