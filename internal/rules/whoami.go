package rules

import (
	"os"
	"os/user"
)

// Whoami returns the user and host of this process, the default author of a rule.
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
