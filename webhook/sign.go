package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	return formatSecret(key)
}

func formatSecret(key []byte) string {
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

// sign returns the value of the signature header: a signature with each key, separated by spaces.
func sign(keys [][]byte, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		signatures[i] = signatureOf(key, id, strconv.FormatInt(at.Unix(), 10), body)
	}
	return strings.Join(signatures, " ")
}

// signatureOf signs with one key. at is in seconds, as the header has it.
func signatureOf(key []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return signatureV1 + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

var (
	errUnsigned  = errors.New("the request is not signed")
	errTimestamp = errors.New("webhook-timestamp is no time within 5 minutes from now")
	errSignature = errors.New("no signature is right")
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
	signatures := strings.Fields(given)
	right := func(key []byte) bool {
		want := []byte(signatureOf(key, id, at, body))
		return slices.ContainsFunc(signatures, func(s string) bool { return hmac.Equal([]byte(s), want) })
	}
	if !slices.ContainsFunc(keys, right) {
		return errSignature
	}
	return nil
}
