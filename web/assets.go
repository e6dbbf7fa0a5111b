package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var embedded embed.FS

// contentTypes are the types of files by extension; the system's own may differ.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

type asset struct {
	body []byte
	tag  string // its version, for browsers that cache the file
	kind string
}

type assets map[string]asset

func embeddedAssets() assets {
	files := assets{}
	err := fs.WalkDir(embedded, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		files[strings.TrimPrefix(name, "assets/")] = newAsset(name, body)
		return err
	})
	if err != nil {
		panic("web: " + err.Error()) // the files are a part of the program
	}
	return files
}

func newAsset(name string, body []byte) asset {
	sum := sha256.Sum256(body)
	kind, ok := contentTypes[path.Ext(name)]
	if !ok {
		kind = mime.TypeByExtension(".txt")
	}
	return asset{body, `"` + hex.EncodeToString(sum[:8]) + `"`, kind}
}

func (a assets) serve(w http.ResponseWriter, r *http.Request, name string) {
	file, ok := a[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // cached, but revalidated each time
	h.Set("ETag", file.tag)
	h.Set("Content-Type", file.kind)
	if r.Header.Get("If-None-Match") == file.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Write(file.body)
}
