package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
)

// mostURL is how long the URL of an event may be.
const mostURL = 2048

// payloadField is the field of an entry that has the payload; see the JSON codec.
const payloadField = "data"

// wire is an event as subscribers get it, in this order.
type wire struct {
	Topic string          `json:"topic"`
	Type  string          `json:"type"`
	URL   string          `json:"url"`
	T     int64           `json:"t"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// payload checks an event and encodes it. The error says what is wrong with it.
func (b *Bus) payload(e *Event) (string, error) {
	if err := b.checkTopic(e.Topic); err != nil {
		return "", err
	}
	switch e.Type {
	case Create, Update, Delete, Noop:
	default:
		return "", invalidf("type %.40q is none of create, update, delete and noop", e.Type)
	}
	if err := checkURL(e.URL, b.opts.AllowHTTP); err != nil {
		return "", err
	}
	if e.T.IsZero() {
		e.T = time.Now()
	}
	w := wire{Topic: e.Topic, Type: string(e.Type), URL: e.URL, T: e.T.UnixMilli()}
	if e.Data != nil {
		data, err := encode(e.Data)
		switch {
		case err != nil:
			return "", invalidf("data: %v", err)
		case len(data) > b.opts.MaxData:
			return "", invalidf("data has %d bytes of JSON, more than %d", len(data), b.opts.MaxData)
		case string(data) != "null":
			w.Data = data
		}
	}
	text, err := encode(w)
	return string(text), err
}

// encode encodes as JSON, without the escapes that make it fit for HTML.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

func checkURL(text string, allowHTTP bool) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > mostURL:
		return invalidf("url has %d characters, more than %d", len(text), mostURL)
	case !utf8.ValidString(text): // JSON would change it
		return invalidf("url is not UTF-8")
	case err != nil || u.Host == "":
		return invalidf("url is not absolute")
	case u.Scheme != "https" && (u.Scheme != "http" || !allowHTTP):
		return invalidf("url does not begin with https://")
	case u.RawQuery != "" || u.ForceQuery:
		return invalidf("url has a query")
	}
	return nil
}

// Publish appends events, in order for each topic, as the client of this name, which becomes the publisher of topics that have none. All of
// them are checked before any is appended. It repeats nothing by itself; an event with a DedupID may be published again. The results are
// by index. The error is a *runnel.SendError as that of runnel.Stream.Send, for a topic of another publisher ErrClaimed.
// It blocks until the server has answered, or ctx ends.
func (b *Bus) Publish(ctx context.Context, client string, events ...Event) ([]runnel.Sent, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	texts := make([]string, len(events))
	for i := range events {
		var err error
		e := events[i]
		if texts[i], err = b.payload(&e); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	boxes := map[string]*store.Outbox{} // by topic
	var topics []string
	for i, e := range events {
		if boxes[e.Topic] == nil {
			if err := b.claim(ctx, e.Topic, client); err != nil {
				return nil, err
			}
			box := store.NewOutbox(b.calls.Stream(e.Topic), len(events), false)
			boxes[e.Topic], topics = &box, append(topics, e.Topic)
		}
		boxes[e.Topic].Add(i, b.logOf(e.Topic).Partition, []string{payloadField, texts[i]}, e.DedupID, nil)
	}
	var appends []store.Append
	for _, topic := range topics {
		a := boxes[topic].Appends()[0] // a topic is in one partition
		a.Kind = store.KindTopic
		appends = append(appends, a)
	}
	done := b.calls.Client().Append(ctx, appends)
	results := map[string][]store.Sent{}
	for i, topic := range topics {
		results[topic] = boxes[topic].Results(done[i : i+1])
	}
	sent, failed := make([]runnel.Sent, len(events)), &runnel.SendError{Stream: b.name}
	for i, e := range events {
		r := results[e.Topic][i]
		sent[i] = runnel.Sent{Partition: r.Partition, ID: r.ID, Duplicate: r.Duplicate}
		if r.Err != nil {
			failed.Failed = append(failed.Failed, runnel.SendFailure{Index: i, Partition: r.Partition, Err: r.Err, Unknown: r.Unknown})
		}
		b.count.published(b.name, e.Topic, r)
	}
	if len(failed.Failed) > 0 {
		return sent, failed
	}
	return sent, nil
}
