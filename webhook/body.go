package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	mostBody      = 64 << 10        // but for an array
	mostArray     = 7 << 19         // of events: with their topic and keys they are stored in one call, which has 4 MiB
	mostEvents    = 1000            // of an array
	mostKey       = 200             // of an Idempotency-Key
	mostTimestamp = 253402300799999 // the end of the year 9999
)

// textOf returns the body of a request.
func textOf(r *http.Request, most int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	switch large := (*http.MaxBytesError)(nil); {
	case errors.As(err, &large):
		return nil, tooLargef(most)
	case err != nil:
		return nil, invalidf("the body has not come as a whole")
	}
	return text, nil
}

func tooLargef(most int64) error {
	return refusef(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", most)
}

// read reads the fields of a request, which has none if it has no body.
func read(r *http.Request, into map[string]any) error {
	text, err := textOf(r, mostBody)
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		err = fields(text, into)
	}
	return err
}

// fields reads a JSON object into pointers by name. A field that is null leaves its value as it is.
func fields(text []byte, into map[string]any) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil || given == nil || !utf8.Valid(text) {
		return invalidf("not a JSON object in UTF-8")
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		to, known := into[name]
		if !known {
			return invalidf("unknown field %.40q", name)
		}
		if string(given[name]) == "null" {
			continue
		}
		if err := json.Unmarshal(given[name], to); err != nil {
			return invalidf("field %s: %v", name, err)
		}
	}
	return nil
}

// A number is a whole one of a field, and what it may be.
type number struct{ n, least, most int64 }

// UnmarshalJSON refuses what it may not be.
func (n *number) UnmarshalJSON(text []byte) error {
	given, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || given < n.least || given > n.most {
		return fmt.Errorf("not a whole number from %d to %d", n.least, n.most)
	}
	n.n = given
	return nil
}

// A givenSecret is one of a field: true makes one.
type givenSecret struct {
	text string
	made any // the answer, if it was made
}

// UnmarshalJSON makes a secret, or reads it.
func (s *givenSecret) UnmarshalJSON(text []byte) error {
	if string(text) == "true" {
		s.text = NewSecret()
		s.made = map[string]string{"secret": s.text}
		return nil
	}
	if json.Unmarshal(text, &s.text) != nil || s.text == "" {
		return errors.New("neither true nor a text")
	}
	return nil
}

// listOf returns the elements of a JSON array, or what is no array as the only one.
func listOf(text []byte) (all []json.RawMessage, array bool, err error) {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return []json.RawMessage{text}, false, nil
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, true, invalidf("the body is not JSON: %v", err)
	}
	return all, true, nil
}

// eventsIn reads the events of a request: one, or an array of them.
func (a *api) eventsIn(r *http.Request, topic string) (events []Event, err error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > mostKey || !utf8.ValidString(key) {
		return nil, invalidf("Idempotency-Key has more than %d characters", mostKey)
	}
	text, err := textOf(r, mostArray)
	if err != nil {
		return nil, err
	}
	all, array, err := listOf(text)
	switch most := min(mostEvents, a.opts.MaxLen); {
	case err != nil:
		return nil, err
	case !array && len(text) > mostBody:
		return nil, tooLargef(mostBody)
	case len(all) == 0 || int64(len(all)) > most:
		return nil, invalidf("%d events: 1 to %d are possible", len(all), most)
	}
	for i, one := range all {
		e, err := eventOf(one, topic)
		if err != nil && len(all) > 1 {
			err = fmt.Errorf("event %d: %w", i, err)
		}
		if err != nil {
			return nil, err
		}
		if e.DedupID = key; key != "" && array {
			e.DedupID += "-" + strconv.Itoa(i)
		}
		events = append(events, e)
	}
	return events, nil
}

func eventOf(text []byte, topic string) (Event, error) {
	e, at, data := Event{Topic: topic}, number{n: time.Now().UnixMilli(), most: mostTimestamp}, json.RawMessage(nil)
	err := fields(text, map[string]any{"type": &e.Type, "url": &e.URL, "timestamp": &at, "data": &data})
	if data != nil {
		e.Data = data
	}
	e.T = time.UnixMilli(at.n)
	return e, err
}
