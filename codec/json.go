package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"
)

// JSON writes one compact JSON value without HTML escaping, as encoding/json
// understands it. JSON is text: bytes in a string that are not UTF-8 become
// U+FFFD, so use []byte for these.
var JSON Codec = jsonText{}

type jsonText struct{}

func (jsonText) Name() string { return "json" }

// Check refuses types without anything to send.
func (jsonText) Check(record reflect.Type) error {
	return checkVisible("json", record, jsonCoding, "json")
}

type jsonWriter struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var jsonWriters = sync.Pool{New: func() any {
	w := &jsonWriter{}
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false)
	return w
}}

func (c jsonText) Encode(record any) ([]byte, error) {
	return c.EncodeLimited(record, DefaultLimit)
}

func (jsonText) EncodeLimited(record any, limit int64) (data []byte, err error) {
	defer recovered("encode", record, &err)
	w := jsonWriters.Get().(*jsonWriter)
	w.buf.Reset()
	if err := w.enc.Encode(addressable(record)); err != nil {
		return nil, fmt.Errorf("encode %T: %w%s", record, err, jsonHint(err, nil))
	}
	text := bytes.TrimSuffix(w.buf.Bytes(), []byte("\n"))
	if weighJSON(text, record) > limit {
		return nil, fmt.Errorf("encode %T: %w", record, TooLarge(limit))
	}
	data = owned(&w.buf, text)
	if w.buf.Cap() <= maxPooled {
		jsonWriters.Put(w)
	}
	return data, nil
}

func (c jsonText) Decode(data []byte, record any) error {
	_, err := c.DecodeLimited(data, record, DefaultLimit)
	return err
}

func (jsonText) DecodeLimited(data []byte, record any, limit int64) (takes int64, err error) {
	defer recovered("decode", record, &err)
	if takes = int64(len(data)); takes <= limit {
		takes = weighJSON(data, record)
	}
	if takes > limit {
		return takes, fmt.Errorf("decode %T: %w", record, TooLarge(limit))
	}
	if err := json.Unmarshal(data, record); err != nil {
		return takes, fmt.Errorf("decode %T: %w%s", record, err, jsonHint(err, data))
	}
	return takes, nil
}

var integer = regexp.MustCompile(`^number -?[0-9]+$`)

// jsonHint returns the remedy for JSON that Python writes, or wants, and Go does not support;
// "" if err is about something else.
func jsonHint(err error, data []byte) string {
	var zone *time.ParseError
	var text *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var value *json.UnsupportedValueError
	switch {
	case errors.As(err, &zone) && zone.LayoutElem == "Z07:00" && zone.ValueElem == "":
		return ": it has no time zone, as a naive datetime of Python: send datetime.now(timezone.utc) there, or decode it into a string or a type of your own here"
	case errors.As(err, &text) && text.Offset > 0 && text.Offset <= int64(len(data)) && strings.IndexByte("NI", data[text.Offset-1]) >= 0,
		errors.As(err, &value) && (value.Str == "NaN" || strings.HasSuffix(value.Str, "Inf")):
		return ": JSON has no NaN and no Infinity, though Python writes them: use Optional[float] with None there and *float64 here, or the codec Fields"
	case errors.As(err, &kind) && kind.Type.Kind() >= reflect.Int && kind.Type.Kind() <= reflect.Uintptr && integer.MatchString(kind.Value):
		return ": a number beyond the type's range, which an int of Python does not have: use *big.Int, json.Number or float64"
	}
	return ""
}
