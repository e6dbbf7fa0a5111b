// Package security tests docs/security.md: users of Redis with exactly the listed rights, or
// without dispensable ones, TLS connections, and passwords that are never shown.
package security
