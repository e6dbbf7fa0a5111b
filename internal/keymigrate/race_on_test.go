//go:build race

package keymigrate

// stride is how many requests lie between two at which a move is interrupted: with the race
// detector all of them take minutes.
const stride = 12
