package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// forbidden matches code that could take a payload for HTML or code, or send requests elsewhere.
var forbidden = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|srcdoc|javascript:|https?://|\bimport\(|style="|\bon(click|load|error)="`)

// namespaces are names that no browser requests.
var namespaces = strings.NewReplacer(`xmlns="http://www.w3.org/2000/svg"`, "")

func TestPageIsClosed(t *testing.T) {
	seen := 0
	err := fs.WalkDir(embedded, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(name, "/vendor/") {
			return err
		}
		seen++
		body, err := embedded.ReadFile(name)
		text := namespaces.Replace(string(body))
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if n := bytes.Count(body, []byte("\n")); n > 400 {
			t.Errorf("%s has %d lines", name, n)
		}
		if contentTypes[path.Ext(name)] == "" {
			t.Errorf("%s has no content type", name)
		}
		return err
	})
	if err != nil || seen < 15 {
		t.Errorf("%d files, %v", seen, err)
	}
	for text, bad := range map[string]bool{`<div onclick="x">`: true, `e.innerHTML = s`: true, `fetch("https://x")`: true, "const n = 1": false} {
		if forbidden.MatchString(text) != bad {
			t.Errorf("%q: %v", text, !bad)
		}
	}
}

func TestImportsOfThePageAreThere(t *testing.T) {
	files := embeddedAssets()
	imports := regexp.MustCompile(`from "\./([^"]+)"`)
	for name, file := range files {
		if strings.HasPrefix(name, "vendor/") {
			continue
		}
		for _, m := range imports.FindAllSubmatch(file.body, -1) {
			if _, ok := files[string(m[1])]; !ok {
				t.Errorf("%s imports %s", name, m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllSubmatch(files["index.html"].body, -1) {
		if _, ok := files[strings.TrimPrefix(string(m[1]), "assets/")]; !ok {
			t.Errorf("index.html loads %s", m[1])
		}
	}
}

// The vendored files match the script that fetches them.
func TestVendoredFilesAreUnchanged(t *testing.T) {
	script, err := os.ReadFile("../scripts/vendor-web.sh")
	if err != nil {
		t.Fatal(err)
	}
	files, listed := embeddedAssets(), 0
	for _, m := range regexp.MustCompile(`(?m)^\S+ (\S+) ([0-9a-f]{64})$`).FindAllSubmatch(script, -1) {
		listed++
		if sum := sha256.Sum256(files["vendor/"+string(m[1])].body); hex.EncodeToString(sum[:]) != string(m[2]) {
			t.Errorf("%s differs from the script", m[1])
		}
	}
	for name := range files {
		if strings.HasPrefix(name, "vendor/") {
			listed--
		}
	}
	if listed != 0 {
		t.Errorf("%d more files in the script than in vendor", listed)
	}
}
