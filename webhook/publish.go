package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// Types of events.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
	Noop   = "noop"
)

// mostURL is how long the URL of an event may be.
const mostURL = 2048

// payloadField is the field of an entry that has the payload; see the JSON codec.
const payloadField = "data"

// payload checks an event and encodes it. The error says what is wrong with it.
func (b *Bus) payload(e Event) (string, error) {
	if err := b.checkTopic(e.Topic); err != nil {
		return "", err
	}
	if !slices.Contains([]string{Create, Update, Delete, Noop}, e.Type) {
		return "", invalidf("type %.40q is none of create, update, delete and noop", e.Type)
	}
	if err := checkURL(e.URL, b.opts.AllowHTTP); err != nil {
		return "", err
	}
	if e.T.IsZero() {
		e.T = time.Now()
	}
	data, err := encode(e.Data)
	switch {
	case err != nil:
		return "", invalidf("data: %v", err)
	case e.Data != nil && len(data) > b.opts.MaxData:
		return "", invalidf("data has %d bytes of JSON, more than %d", len(data), b.opts.MaxData)
	}
	e.Data = json.RawMessage(data)
	text, err := e.MarshalJSON()
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
	case !utf8.ValidString(text) || strings.ContainsAny(text, "\u2028\u2029"): // JSON would change it
		return invalidf("url is not UTF-8, or has a line separator")
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
	for i, e := range events {
		var err error
		if texts[i], err = b.payload(e); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	var appends []store.Append // one of each topic, which is in one partition
	at := map[string]int{}     // which of them
	for i, e := range events {
		n, there := at[e.Topic]
		if !there {
			if err := b.claim(ctx, e.Topic, client); err != nil {
				return nil, err
			}
			n, at[e.Topic] = len(appends), len(appends)
			appends = append(appends, store.Append{Stream: b.calls.Stream(e.Topic), Partition: iwebhook.TopicPartition(e.Topic), Kind: store.KindTopic})
		}
		appends[n].Add([]string{payloadField, texts[i]}, e.DedupID, nil)
	}
	done, seen := b.calls.Client().Append(ctx, appends), make([]int, len(appends))
	sent, failed := make([]runnel.Sent, len(events)), &runnel.SendError{Stream: b.name}
	for i, e := range events {
		n := at[e.Topic]
		r, partition := done[n].Record(seen[n]), appends[n].Partition
		seen[n]++
		sent[i] = runnel.Sent{Partition: partition, ID: r.ID, Duplicate: r.Duplicate}
		if r.Err != nil {
			failed.Failed = append(failed.Failed, runnel.SendFailure{Index: i, Partition: partition, Err: r.Err, Unknown: r.Unknown})
		}
		b.count.published(b.name, e.Topic, r)
	}
	if len(failed.Failed) > 0 {
		return sent, failed
	}
	return sent, nil
}
