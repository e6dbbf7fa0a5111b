package codec_test

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"strings"

	"github.com/runnel-go/runnel/codec"
)

type Page struct {
	URL  string `json:"url"`
	HTML string `json:"html"`
}

func ExampleGzip() {
	codec := codec.Gzip(codec.JSON)
	page := Page{"https://example.com", strings.Repeat("<p>hello</p>", 1000)}

	data, err := codec.Encode(page)
	if err != nil {
		fmt.Println(err)
		return
	}
	var got Page
	if err := codec.Decode(data, &got); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(codec.Name(), got == page, len(data) < 200)
	// Output: gzip+json true true
}

// Fields writes what redis-cli and other languages can read without a decoder.
func ExampleFieldCodec() {
	type Reading struct {
		Sensor string  `json:"sensor"`
		Value  float64 `json:"value"`
		Valid  bool    `json:"valid"`
	}
	codec := codec.Fields.(codec.FieldCodec)

	fields, err := codec.EncodeFields(Reading{"kitchen", 21.5, true})
	fmt.Println(fields, err)

	var fromPython Reading
	err = codec.DecodeFields(map[string]string{"sensor": "hall", "value": "1e-05", "valid": "False"}, &fromPython)
	fmt.Println(fromPython, err)

	err = codec.DecodeFields(map[string]string{"value": "warm"}, new(Reading))
	fmt.Println(err)
	// Output:
	// [sensor kitchen value 21.5 valid true] <nil>
	// {hall 1e-05 false} <nil>
	// decode *codec_test.Reading: field value: "warm" is no float64
}

// sealed encrypts what another codec encodes.
type sealed struct {
	of   codec.Codec
	aead cipher.AEAD
}

func (s sealed) Name() string { return "sealed+" + s.of.Name() }

func (s sealed) Encode(record any) ([]byte, error) {
	data, err := s.of.Encode(record)
	if err != nil {
		return nil, err
	}
	return s.aead.Seal(nil, nil, data, nil), nil
}

func (s sealed) Decode(data []byte, record any) error {
	// Into new memory: data is not ours to write to.
	plain, err := s.aead.Open(nil, nil, data, nil)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return s.of.Decode(plain, record)
}

// A codec of one's own wraps another, or does all the work itself.
func ExampleCodec() {
	block, err := aes.NewCipher([]byte("sixteen byte key"))
	if err != nil {
		fmt.Println(err)
		return
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		fmt.Println(err)
		return
	}
	codec := sealed{codec.MsgPack, aead}

	data, err := codec.Encode(Page{URL: "https://example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var page Page
	fmt.Println(codec.Name(), strings.Contains(string(data), "example"))
	fmt.Println(codec.Decode(data, &page), page.URL)
	data[len(data)-1] ^= 1
	fmt.Println(codec.Decode(data, &page))
	// Output:
	// sealed+msgpack false
	// <nil> https://example.com
	// open: cipher: message authentication failed
}
