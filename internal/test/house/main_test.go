package house_test

import (
	"fmt"
	"os"
	"testing"
)

// All paths of these tests begin at the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
