package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"strings"

	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

const (
	sealKeySize  = 32                    // AES-256
	sealedPrefix = iwebhook.SealedPrefix // base64 of nonce and sealed text
	plainPrefix  = "p1:"                 // what is stored without keys
)

// A sealPlace is where a sealed text belongs. It opens nowhere else.
type sealPlace struct{ app, bus, subscriber, field string }

// data are the additional data of a place. No name has a zero byte.
func (p sealPlace) data() []byte {
	return []byte(strings.Join([]string{p.app, p.bus, p.subscriber, p.field}, "\x00"))
}

// A sealer encrypts what is secret but has to be read again. It is safe for concurrent use.
type sealer struct{ keys []cipher.AEAD }

// newSealer returns a sealer whose first key seals, and all of whose keys open. Without keys it stores texts as they are.
func newSealer(keys [][]byte) (*sealer, error) {
	s := &sealer{}
	for i, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil || len(key) != sealKeySize {
			return nil, fmt.Errorf("seal key %d has %d bytes instead of %d", i+1, len(key), sealKeySize)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("seal key %d: %w", i+1, err)
		}
		s.keys = append(s.keys, aead)
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

// seal returns a text as it is stored at a place.
func (s *sealer) seal(plain string, at sealPlace) string {
	if len(s.keys) == 0 {
		return plainPrefix + plain
	}
	return sealedPrefix + base64.StdEncoding.EncodeToString(s.keys[0].Seal(nil, nil, []byte(plain), at.data()))
}

// open returns what was sealed at a place, or stored there without keys. Its error shows nothing of it.
func (s *sealer) open(stored string, at sealPlace) (string, error) {
	if plain, ok := strings.CutPrefix(stored, plainPrefix); ok {
		return plain, nil
	}
	why := "no seal key opens it"
	encoded, ok := strings.CutPrefix(stored, sealedPrefix)
	switch sealed, err := base64.StdEncoding.DecodeString(encoded); {
	case !ok || err != nil:
		why = "not what a bus has stored"
	case len(s.keys) == 0:
		why = "sealed, but there are no seal keys"
	default:
		for _, key := range s.keys {
			if plain, err := key.Open(nil, nil, sealed, at.data()); err == nil {
				return string(plain), nil
			}
		}
	}
	return "", fmt.Errorf("open %s of subscriber %s: %s", at.field, at.subscriber, why)
}
