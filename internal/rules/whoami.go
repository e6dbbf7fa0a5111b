package rules

import (
	"os"
	"os/user"
)

// Whoami is the user and host of this process, who stands in a rule where nobody
// is named.
func Whoami() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
