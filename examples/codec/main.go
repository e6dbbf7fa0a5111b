// Codec stores records in other ways than MessagePack: as compressed JSON, as
// native Redis fields, and encrypted by a codec of its own.
//
//	go run ./examples/codec worker --dev
package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/codec"
)

type Page struct {
	URL  string `json:"url"`
	HTML string `json:"html"`
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
	plain, err := s.aead.Open(nil, nil, data, nil) // into new memory: data is not ours to change
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return s.of.Decode(plain, record)
}

func main() {
	key := make([]byte, 32) // a real one comes from a secret store: every process needs the same
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		log.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		log.Fatal(err)
	}

	app := runnel.New("crawler", nil)
	declare := func(name string, codec codec.Codec) *runnel.Stream[Page] {
		s := runnel.NewStream(app, name, func(p Page) string { return p.URL }, &runnel.StreamOptions{Codec: codec})
		s.Process("show", runnel.Each(show), nil)
		return s
	}
	zipped := declare("zipped", codec.Gzip(codec.JSON))
	native := declare("native", codec.Fields)
	secret := declare("secret", sealed{codec.MsgPack, aead})

	app.Every("crawl", time.Second, func(ctx context.Context) error {
		page := Page{"https://example.com", strings.Repeat("<p>hello</p>", 100)}
		for _, s := range []*runnel.Stream[Page]{zipped, native, secret} {
			if err := s.Send(ctx, page); err != nil {
				return err
			}
		}
		return nil
	}, nil)

	cli.Run(app)
}

func show(ctx context.Context, e *runnel.Event, page Page) error {
	stored := 0
	for _, value := range e.Fields() {
		stored += len(value)
	}
	fmt.Printf("%s: %d bytes of HTML in %d bytes stored\n", e.Stream, len(page.HTML), stored)
	return nil
}
