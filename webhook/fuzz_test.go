package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/corpus"
)

// FuzzReceive sends arbitrary bodies and signatures. What is not signed does not reach the function, and of what does every event has a type.
func FuzzReceive(f *testing.F) {
	corpus.Add(f)
	secret, at := NewSecret(), time.Now()
	keys := mustParse(f, secret)
	f.Fuzz(func(t *testing.T, signature string, body []byte) {
		g := &got{}
		w := respond(Receive(ReceiveOptions{}, g.take), posted(string(body)))
		if (w.Code == http.StatusNoContent) != (len(g.batches) == 1) || w.Code != http.StatusNoContent && w.Code != http.StatusBadRequest {
			t.Fatalf("answered %d, %d batches", w.Code, len(g.batches))
		}
		for _, b := range g.batches {
			for _, e := range b.Events {
				if e.Type == "" {
					t.Fatalf("%s became %+v", body, b)
				}
			}
		}
		signed := posted(string(body))
		for name, value := range signedHeader("msg_a", at, signature) {
			signed.Header[name] = value
		}
		right := sign(keys, "msg_a", secondsOf(at), body)
		w = respond(Receive(ReceiveOptions{Secrets: []string{secret}}, g.take), signed)
		if w.Code != http.StatusForbidden && !strings.Contains(signature, right) {
			t.Fatalf("%q is accepted", signature)
		}
		signed = posted(string(body))
		for name, value := range signedHeader("msg_a", at, signature+" "+right) {
			signed.Header[name] = value
		}
		if w := respond(Receive(ReceiveOptions{Secrets: []string{secret}}, g.take), signed); w.Code == http.StatusForbidden {
			t.Fatalf("the right signature behind %q is refused", signature)
		}
	})
}
