package webhook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	mostBody      = 64 << 10
	mostArray     = 4 << 20         // of events
	mostEvents    = 1000            // of an array
	mostKey       = 200             // of an Idempotency-Key
	mostTimestamp = 253402300799999 // the end of the year 9999
	mostPause     = 366 * 24 * time.Hour
	mostWhy       = 200
)

// bodyOfRequest returns the body of a request. Only an array of events may be large.
func bodyOfRequest(r *http.Request, events bool) ([]byte, error) {
	in, most := bufio.NewReader(r.Body), mostBody
	for events {
		c, err := in.ReadByte()
		if err != nil {
			break // with what follows
		}
		if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			continue
		}
		_ = in.UnreadByte()
		if c == '[' {
			most = mostArray
		}
		break
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	switch {
	case err != nil:
		return nil, refusal(http.StatusBadRequest, "the body has not come as a whole")
	case len(text) > most:
		return nil, refusal(http.StatusRequestEntityTooLarge, "the body has more than "+strconv.Itoa(most)+" bytes")
	case !utf8.Valid(text):
		return nil, invalidf("the body is not UTF-8")
	}
	return text, nil
}

// fields reads a JSON object into pointers by name. A field that is null leaves its value as it is; "" has no fields.
func fields(text []byte, into map[string]any) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil || given == nil {
		return notJSON("a JSON object", err)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		to, known := into[name]
		switch {
		case !known:
			return invalidf("unknown field %.40q", name)
		case string(given[name]) == "null":
		case json.Unmarshal(given[name], to) != nil:
			return invalidf("field %s is not %s", name, kindOf(to))
		}
	}
	return nil
}

// optional is fields of a request that may have no body.
func optional(r *http.Request, into map[string]any) error {
	text, err := bodyOfRequest(r, false)
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		err = fields(text, into)
	}
	return err
}

func notJSON(what string, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return invalidf("the body is not JSON: %v, byte %d", err, syntax.Offset)
	}
	return invalidf("the body is not %s", what)
}

func kindOf(to any) string {
	switch to.(type) {
	case *string:
		return "a text"
	case **int64:
		return "a whole number"
	case *[]string, *[]Role:
		return "a list of texts"
	}
	return "what it has to be"
}

// eventsIn reads the events of a request: one, or an array of them.
func eventsIn(r *http.Request, topic string) (events []Event, array bool, err error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > mostKey || !utf8.ValidString(key) {
		return nil, false, invalidf("Idempotency-Key has more than %d characters", mostKey)
	}
	text, err := bodyOfRequest(r, true)
	if err != nil {
		return nil, false, err
	}
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		e, err := eventOf(text, topic)
		e.DedupID = key
		return []Event{e}, false, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, true, notJSON("an array", err)
	}
	if len(all) == 0 || len(all) > mostEvents {
		return nil, true, invalidf("%d events: 1 to %d are possible", len(all), mostEvents)
	}
	for i, one := range all {
		e, err := eventOf(one, topic)
		if err != nil {
			return nil, true, invalidf("event %d: %v", i, err)
		}
		if key != "" {
			e.DedupID = key + "-" + strconv.Itoa(i)
		}
		events = append(events, e)
	}
	return events, true, nil
}

func eventOf(text []byte, topic string) (Event, error) {
	e := Event{Topic: topic}
	var at *int64
	var data json.RawMessage
	if err := fields(text, map[string]any{"type": &e.Type, "url": &e.URL, "timestamp": &at, "data": &data}); err != nil {
		return e, err
	}
	if at != nil {
		if *at < 0 || *at > mostTimestamp {
			return e, invalidf("timestamp %d is not in 0 to %d ms", *at, mostTimestamp)
		}
		e.T = time.UnixMilli(*at)
	}
	if data != nil {
		e.Data = data
	}
	return e, nil
}

// subscriptionOf reads a subscription; made says that its secret is new.
func subscriptionOf(text []byte, client string) (s Subscription, made bool, err error) {
	s.Client = client
	var timeout, most *int64
	var secret json.RawMessage
	format := "array"
	if err := fields(text, map[string]any{
		"topics": &s.Topics, "callback": &s.Callback, "uuid": &s.UUID, "timeout": &timeout, "max": &most, "format": &format, "secret": &secret,
	}); err != nil {
		return s, false, err
	}
	if most != nil {
		if *most < 1 || *most > mostMax {
			return s, false, invalidf("max %d is not in 1 to %d", *most, mostMax)
		}
		s.Max = int(*most)
	}
	if timeout != nil {
		if *timeout < 0 || *timeout > mostDeadline.Milliseconds() {
			return s, false, invalidf("timeout %d is not in 0 to %d ms", *timeout, mostDeadline.Milliseconds())
		}
		if s.Timeout = time.Duration(*timeout) * time.Millisecond; s.Timeout == 0 {
			s.Timeout = -1
		}
	}
	switch format {
	case "array":
	case string(Single):
		s.Format = Single
	default:
		return s, false, invalidf("format %.40q is neither array nor single", format)
	}
	s.Secret, made, err = secretOf(secret)
	return s, made, err
}

// secretOf reads a secret: true makes one.
func secretOf(field json.RawMessage) (secret string, made bool, err error) {
	switch {
	case field == nil:
		return "", false, nil
	case string(field) == "true":
		return NewSecret(), true, nil
	case json.Unmarshal(field, &secret) != nil || secret == "":
		return "", false, invalidf("secret is neither true nor a text")
	}
	return secret, false, nil
}
