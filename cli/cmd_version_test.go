package cli

import (
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	run(t.Context(), newShopApp(), "", "version").want(t, 0, ", runnel ", "")
	r := run(t.Context(), nil, "", "version", "--output", "json")
	if v := parse[versions](t, r); v.Runnel == "" || !strings.HasPrefix(v.Go, "go1.") || v.Version == "" {
		t.Errorf("%+v", v)
	}
}
