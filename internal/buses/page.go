package buses

import (
	_ "embed"

	"github.com/runnel-go/runnel/internal/extension"
)

//go:embed page.js
var module []byte

// page is the page of the dashboard: topics, subscribers, and one of these with its open batch and last answer. Its rows pause subscribers by
// the actions of the core.
func page() *extension.Page {
	return extension.NewPage("Webhooks", module, commands(nil), "topics", "subs")
}
