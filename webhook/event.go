package webhook

// Types of events.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
	Noop   = "noop"
)
