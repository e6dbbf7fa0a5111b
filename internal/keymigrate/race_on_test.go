//go:build race

package keymigrate

// stride is the distance in requests between two at which a move is interrupted: with the race
// detector, all of them take minutes.
const stride = 23
