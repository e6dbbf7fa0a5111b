package codec

import "testing"

// hundred has about 100 bytes of payload.
type hundred struct {
	ID       uint64  `json:"id"`
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
	Paid     bool    `json:"paid"`
	Note     string  `json:"note"`
}

var hundredRecord = hundred{1234567, "customer-000042", 99.95, true, "leave it at the front door, please"}

func BenchmarkCodec(b *testing.B) {
	for _, c := range []Codec{MsgPack, JSON, Gzip(JSON), Zstd(JSON), LZ4(JSON)} {
		data, err := c.Encode(hundredRecord)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.Name()+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(data)), "bytes")
			for b.Loop() {
				if _, err := c.Encode(hundredRecord); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.Name()+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Decode(data, new(hundred)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFields(b *testing.B) {
	c := Fields.(FieldCodec)
	fields := map[string]string{"id": "1234567", "customer": "customer-000042", "amount": "99.95", "paid": "true", "note": hundredRecord.Note}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.EncodeFields(hundredRecord); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := c.DecodeFields(fields, new(hundred)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
