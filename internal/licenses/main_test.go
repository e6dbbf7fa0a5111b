package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every license of the table is one that is allowed.
func TestTheTableHasAllowedLicensesOnly(t *testing.T) {
	table, err := parse(known)
	if err != nil || len(table) < 10 {
		t.Fatalf("%d texts, %v", len(table), err)
	}
	if _, err := parse("0123 MIT"); err == nil {
		t.Error("a line without a sum is taken")
	}
}

func TestLicenseOf(t *testing.T) {
	const text = "The Sample License\n\nCopyright (c) 2026 Ann\n\nPermission is granted, \"AS IS\".\n"
	tests := []struct {
		name  string
		files map[string]string
		want  string
		fault string
	}{
		{"known", map[string]string{"LICENSE": text}, "MIT", ""},
		{"of another holder, set otherwise", map[string]string{"license.md": "# The Sample License\nCOPYRIGHT Bob\n permission is\ngranted, “as is”"}, "MIT", ""},
		{"two", map[string]string{"LICENSE": text, "LICENSE.other": "other\n"}, "MIT AND ISC", ""},
		{"none", map[string]string{"README": text}, "", "no file with a license"},
		{"changed", map[string]string{"LICENSE": strings.Replace(text, "is granted", "is not granted", 1)}, "", "not known: read it"},
		{"not allowed", map[string]string{"COPYING": "strict\n"}, "", "GPL-3.0 is not allowed"},
		{"one of two not known", map[string]string{"LICENSE": text, "COPYING": "x"}, "", "not known"},
	}
	table := map[string]string{sumOf(text): "MIT", sumOf("other"): "ISC", sumOf("strict"): "GPL-3.0"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, fault := licenseOf(table, dir)
			if got != tt.want || !strings.Contains(fault, tt.fault) || (fault == "") != (tt.fault == "") {
				t.Errorf("got %q, %q; want %q, %q", got, fault, tt.want, tt.fault)
			}
		})
	}
}
