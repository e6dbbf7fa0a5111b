package corpus

import (
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader("[]byte(\"a\\n)\")\nint(-7)\n\nstring(\"\\xff\")\nint(0)\n\n"))
	want := [][]any{{[]byte("a\n)"), -7}, {"\xff", 0}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	for _, bad := range []string{"", "string(\"a\")\n", "string(a)\n\n", "float64(1)\n\n", "int(x)\n\n", "a\n\n"} {
		if got, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %q, want an error", bad, got)
		}
	}
}
