package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// keyShown is how many bytes of a key are kept for people.
const keyShown = 1 << 10

// Prefixes of the names of keys' lanes.
const (
	plainLane  = "k" // the key follows
	hashedLane = "h" // the hash of a key that JSON cannot hold, or that is long
)

// KeyLane returns the name of the lane in which the events of a key wait. It is short, valid in
// JSON as it is, and different for each key.
func KeyLane(key string) string {
	if KeyText(key) == key {
		return plainLane + key
	}
	return hashedLane + sumOf(key)
}

// KeyText returns a key for people: invalid UTF-8 is written as \xff, and a long key is cut.
func KeyText(key string) string {
	if len(key) <= keyShown && utf8.ValidString(key) {
		return key
	}
	var b strings.Builder
	for rest := key; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		piece := rest[:n]
		if r == utf8.RuneError && n == 1 {
			piece = fmt.Sprintf(`\x%02x`, rest[0])
		}
		if b.Len()+len(piece) > keyShown {
			return b.String() + "…"
		}
		b.WriteString(piece)
		rest = rest[n:]
	}
	return b.String()
}

func sumOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// SetKey stores the key of the event.
func (s *RetryState) SetKey(key string) {
	s.Key, s.Sum = KeyText(key), ""
	if s.Key != key {
		s.Sum = sumOf(key)
	}
}

// HasKey reports whether key is that of the event.
func (s *RetryState) HasKey(key string) bool {
	if s.Sum != "" {
		return s.Sum == sumOf(key)
	}
	return s.Key == key
}

// Garbled reports whether the lane's name may be none of a key: an earlier release stored keys of
// any bytes as JSON, which replaces invalid UTF-8.
func (s *RetryState) Garbled() bool {
	return s.Version == retryVersion && strings.HasPrefix(s.Lane, plainLane) && strings.ContainsRune(s.Lane, utf8.RuneError)
}
