package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	sealKeySize  = 32    // AES-256
	sealedPrefix = "s1:" // base64 of nonce and sealed text
	plainPrefix  = "p1:" // what is stored without keys
)

// A sealer encrypts what is secret but has to be read again. It is safe for concurrent use.
type sealer []cipher.AEAD

// newSealer returns a sealer whose first key seals, and all of whose keys open. Without keys it stores texts as they are.
func newSealer(keys [][]byte) (s sealer, err error) {
	for i, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil || len(key) != sealKeySize {
			return nil, fmt.Errorf("seal key %d has %d bytes instead of %d", i+1, len(key), sealKeySize)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("seal key %d: %w", i+1, err)
		}
		s = append(s, aead)
	}
	return s, nil
}

// parseSealKeys reads keys from base64 with commas between them. Its error shows nothing of them.
func parseSealKeys(text string) (keys [][]byte, err error) {
	if text == "" {
		return nil, nil
	}
	for i, part := range strings.Split(text, ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("seal key %d is not base64", i+1)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// placeOf returns where the sealed text of a field belongs. No name has a zero byte.
func placeOf(app, bus, subscriber, field string) []byte {
	return []byte(app + "\x00" + bus + "\x00" + subscriber + "\x00" + field)
}

// seal returns a text as it is stored at a place, and opens nowhere else.
func (s sealer) seal(plain string, place []byte) string {
	if len(s) == 0 {
		return plainPrefix + plain
	}
	return sealedPrefix + base64.StdEncoding.EncodeToString(s[0].Seal(nil, nil, []byte(plain), place))
}

var errSealed = errors.New("no seal key opens it")

// open returns what was sealed at a place, or stored there without keys.
func (s sealer) open(stored string, place []byte) (string, error) {
	if plain, ok := strings.CutPrefix(stored, plainPrefix); ok {
		return plain, nil
	}
	encoded, ours := strings.CutPrefix(stored, sealedPrefix)
	sealed, err := base64.StdEncoding.DecodeString(encoded)
	for _, key := range s {
		if plain, wrong := key.Open(nil, nil, sealed, place); ours && err == nil && wrong == nil {
			return string(plain), nil
		}
	}
	return "", errSealed
}
