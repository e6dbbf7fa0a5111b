package webhook

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

var aPlace = placeOf("shop", "bus", "mail", "uuid")

func sealerOf(t *testing.T, keys ...byte) sealer {
	t.Helper()
	var all [][]byte
	for _, k := range keys {
		all = append(all, bytes.Repeat([]byte{k}, 32))
	}
	s, err := newSealer(all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSealedTextsOpen(t *testing.T) {
	const plain = "whsec_U2VjcmV0U2VjcmV0U2VjcmV0U2VjcmV0"
	old := sealerOf(t, 1).seal(plain, aPlace)
	if !strings.HasPrefix(old, "s1:") || strings.Contains(old, plain) {
		t.Errorf("sealed as %s", old)
	}
	if again := sealerOf(t, 1).seal(plain, aPlace); again == old {
		t.Error("sealed twice alike")
	}
	rotated := sealerOf(t, 2, 1)
	if got, err := rotated.open(old, aPlace); err != nil || got != plain {
		t.Errorf("the former key: %q, %v", got, err)
	}
	if got, err := sealerOf(t, 2).open(rotated.seal(plain, aPlace), aPlace); err != nil || got != plain {
		t.Errorf("the first key does not seal: %q, %v", got, err)
	}
	for name, s := range map[string]sealer{"no keys": sealerOf(t), "keys that came later": sealerOf(t, 1)} {
		if got, err := s.open(sealerOf(t).seal(plain, aPlace), aPlace); err != nil || got != plain {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := rotated.open(rotated.seal("", aPlace), aPlace); err != nil || got != "" {
		t.Errorf("nothing: %q, %v", got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	const plain = "geheim-7f3a"
	s := sealerOf(t, 1)
	sealed := s.seal(plain, aPlace)
	raw, err := base64.StdEncoding.DecodeString(sealed[3:])
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		if got, err := s.open("s1:"+base64.StdEncoding.EncodeToString(changed), aPlace); err == nil {
			t.Errorf("byte %d changed: %q", i, got)
		}
	}
	for _, tt := range []struct {
		name, stored string
		s            sealer
		at           []byte
	}{
		{"another key", sealed, sealerOf(t, 2, 3), aPlace},
		{"no keys", sealed, sealerOf(t), aPlace},
		{"another app", sealed, s, placeOf("shop2", "bus", "mail", "uuid")},
		{"another subscriber", sealed, s, placeOf("shop", "bus", "mai", "uuid")},
		{"another field", sealed, s, placeOf("shop", "bus", "mail", "secret")},
		{"parts cut differently", sealed, s, placeOf("sho", "pbus", "mail", "uuid")},
		{"swapped", sealed, s, placeOf("bus", "shop", "mail", "uuid")},
		{"cut off", "s1:" + base64.StdEncoding.EncodeToString(raw[:11]), s, aPlace},
		{"no base64", "s1:" + plain, s, aPlace},
		{"no prefix", plain, s, aPlace},
		{"nothing", "", s, aPlace},
		{"of a later release", "s2:" + sealed[3:], s, aPlace},
	} {
		got, err := tt.s.open(tt.stored, tt.at)
		if err != errSealed || got != "" {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
	}
}

func TestParseSealKeys(t *testing.T) {
	key := func(k byte, n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{k}, n)) }
	keys, err := parseSealKeys(" " + key(1, 32) + ", " + key(2, 32) + "\n")
	if err != nil || len(keys) != 2 || keys[0][0] != 1 || keys[1][0] != 2 {
		t.Errorf("got %v, %v", keys, err)
	}
	for bad, want := range map[string]string{
		" ": "seal key 1 has 0 bytes", key(1, 31): "seal key 1 has 31 bytes instead of 32", key(1, 32) + ",": "seal key 2 has 0 bytes", key(1, 32) + ",QUJDQUJD!": "seal key 2 is not base64",
		key(1, 16): "seal key 1 has 16 bytes",
	} {
		keys, err := parseSealKeys(bad)
		if err == nil {
			_, err = newSealer(keys)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "QUJD") {
			t.Errorf("%s: got %v, want %s", bad, err, want)
		}
	}
}
