// A record larger than MaxRecord is not sent; batches of large ones are.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/runneltest"
)

func textKey(text string) string { return "" }

// What would be a dead letter is not sent.
func TestARecordLargerThanMaxRecordIsNotSent(t *testing.T) {
	for _, c := range []codec.Codec{codec.MsgPack, codec.JSON, codec.Zstd(codec.JSON), custom{codec.JSON}} {
		url, stop := serve()
		app := runnel.New("shop", &runnel.Options{RedisURL: url})
		texts := runnel.NewStream(app, "texts", textKey, &runnel.StreamOptions{Codec: c, MaxRecord: 2000})
		for _, send := range []func(string) error{
			func(text string) error { return texts.Send(t.Context(), "small", text) },
			func(text string) error { _, err := texts.SendAfter(t.Context(), 1, text); return err },
		} {
			err := send(strings.Repeat("x", 3000))
			if !errors.Is(err, codec.ErrTooLarge) || !strings.Contains(err.Error(), "stream texts: encode record ") || !strings.Contains(err.Error(), "MaxRecord") {
				t.Errorf("%s: %v", c.Name(), err)
			}
			if err := send(strings.Repeat("x", 1500)); err != nil {
				t.Errorf("%s: a record that is not too large: %v", c.Name(), err)
			}
		}
		app.Close()
		stop()
	}
}

// custom is a Codec that knows no limits.
type custom struct{ codec.Codec }

func (c custom) Encode(record any) ([]byte, error)    { return c.Codec.Encode(record) }
func (c custom) Decode(data []byte, record any) error { return c.Codec.Decode(data, record) }

// Large records come in batches of their own, in order, and none is lost.
func TestLargeRecordsInBatches(t *testing.T) {
	app := runnel.New("shop", nil)
	texts := runnel.NewStream(app, "texts", textKey, &runnel.StreamOptions{Codec: codec.Gzip(codec.JSON), MaxRecord: 1 << 20})
	var batches []string
	texts.Process("p", runnel.EachBatch(100, 0, func(_ context.Context, e []*runnel.Event, records []string) error {
		names := make([]string, len(records))
		for i, r := range records {
			names[i] = strings.TrimLeft(r, "x")
		}
		batches = append(batches, strings.Join(names, ","))
		return nil
	}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 1}})
	var all []string
	for i := range 8 {
		size := 10
		if i%4 == 3 {
			size = 600_000
		}
		all = append(all, strings.Repeat("x", size)+fmt.Sprint(i))
	}
	for i := range 8 {
		all = append(all, strings.Repeat("x", 200_000)+fmt.Sprint("m", i))
	}
	got := runneltest.Process(t, texts, "p", all...)
	if text := strings.Join(batches, " "); text != "0,1,2 3,4,5,6 7,m0,m1 m2,m3,m4,m5,m6 m7" || got.Err != nil {
		t.Errorf("batches %s, %v", text, got.Err)
	}
}
