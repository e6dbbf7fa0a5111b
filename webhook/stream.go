package webhook

import (
	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// Stream declares the stream of a topic, for processors in Go: they get its events as subscribers do, and keep what they need. It panics as
// runnel.NewStream does, and on a name that no topic has.
func (b *Bus) Stream(topic string) *runnel.Stream[Event] {
	if err := b.checkTopic(topic); err != nil {
		panic("runnel: app " + b.app.Name() + ": bus " + b.name + ": " + err.Error())
	}
	s := runnel.NewStream(b.app, b.name+"."+topic, func(e Event) string { return e.Topic }, &runnel.StreamOptions{
		Partitions: iwebhook.TopicPartitions, MaxLen: b.opts.MaxLen, Overflow: b.opts.Overflow, DedupWindow: b.opts.DedupWindow,
		Codec: codec.JSON, Partitioner: runnel.XXHash,
	})
	extension.Declare(s, store.KindTopic, nil)
	return s
}
