//go:build !race

package tier

// Race reports whether the race detector is on. It makes simulations ten times slower.
const Race = false
