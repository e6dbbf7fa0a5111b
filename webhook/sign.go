package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery. Those of Standard Webhooks are sent only if there are secrets.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
	headerBatch     = "Runnel-Batch" // the ID, with secrets or without
	headerAttempt   = "Runnel-Attempt"
	headerEpoch     = "Runnel-Epoch"
)

const (
	secretPrefix = "whsec_"
	secretLeast  = 24 // bytes
	secretMost   = 64
	signatureV1  = "v1,"

	// tolerance is how far a signed timestamp may be from the receiver's clock.
	tolerance = 5 * time.Minute
)

// NewSecret returns a new signing secret: "whsec_" and 32 random bytes in base64. It may be called concurrently.
func NewSecret() string {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// parseSecret returns the key in a secret. Its error shows nothing of it.
func parseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(key) < secretLeast || len(key) > secretMost {
		return nil, fmt.Errorf("a secret is %s and %d to %d bytes in base64", secretPrefix, secretLeast, secretMost)
	}
	return key, nil
}

// sign returns the value of the signature header: a signature with each key, separated by spaces. at is in seconds, as its header has it.
func sign(keys [][]byte, id, at string, body []byte) string {
	var all []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		all = append(all, signatureV1+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}

var (
	errUnsigned  = refusef(http.StatusForbidden, "the request is not signed")
	errTimestamp = refusef(http.StatusForbidden, "webhook-timestamp is no time within 5 minutes from now")
	errSignature = refusef(http.StatusForbidden, "no signature is right")
)

// verify returns nil if one of the signatures in the headers is one of the keys', of this body and not long ago.
func verify(keys [][]byte, h http.Header, body []byte, now time.Time) error {
	id, at, given := h.Get(headerID), h.Get(headerTimestamp), h.Get(headerSignature)
	if id == "" || at == "" || given == "" {
		return errUnsigned
	}
	// Compared as numbers, since no time.Duration holds what a stranger may send.
	seconds, err := strconv.ParseInt(at, 10, 64)
	if most := int64(tolerance / time.Second); err != nil || seconds < now.Unix()-most || seconds > now.Unix()+most {
		return errTimestamp
	}
	for _, right := range strings.Fields(sign(keys, id, at, body)) {
		for _, one := range strings.Fields(given) {
			if hmac.Equal([]byte(one), []byte(right)) {
				return nil
			}
		}
	}
	return errSignature
}
