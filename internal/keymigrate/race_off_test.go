//go:build !race

package keymigrate

// stride is the distance in requests between two at which a move is interrupted.
const stride = 1
