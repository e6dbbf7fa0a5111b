// Package security holds the framework to docs/security.md: users of Redis that have
// exactly the rights that it lists, or lack some that can be done without, connections by
// TLS, and passwords that are never shown.
package security
