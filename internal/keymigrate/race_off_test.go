//go:build !race

package keymigrate

// stride is how many requests lie between two at which a move is interrupted.
const stride = 1
