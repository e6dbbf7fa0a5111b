package runnel

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// pythonPrefix begins the name of each partitioner that agrees with one of Python's runnel.
const pythonPrefix = "python-"

// encodeFor encodes a record as a stream does, if all that may read the stream as JSON can: a
// partitioner of Python's tells that Python does.
func encodeFor(o *StreamOptions, record any) ([]byte, error) {
	data, err := encodePayload(o.Codec, record, o.MaxRecord)
	if err == nil && record != nil && strings.HasPrefix(o.Partitioner.Name, pythonPrefix) && strings.HasSuffix(o.Codec.Name(), JSON.Name()) {
		err = crosses(reflect.ValueOf(record), "")
	}
	return data, err
}

// crosses returns why Python's runnel could not read a value that JSON has encoded, or would
// read another one. path names the value in the record.
func crosses(v reflect.Value, path string) error {
	t := v.Type()
	if writesItself(t, jsonCoding) {
		return nil
	}
	switch k := v.Kind(); {
	case (k == reflect.Pointer || k == reflect.Interface) && !v.IsNil():
		return crosses(v.Elem(), path)
	case (k == reflect.Slice || k == reflect.Map) && v.IsNil():
		return fmt.Errorf("field %s: a nil %s is null as JSON, which Python's runnel refuses: make it empty, leave it out with omitempty, "+
			"or use a pointer to it where Python has an Optional", path, k)
	case k == reflect.String && !utf8.ValidString(v.String()):
		return fmt.Errorf("field %s: %.40q is not UTF-8, and would be another text as JSON: mend it, or use []byte, which is base64", path, v.String())
	case k == reflect.Struct:
		return fieldsCross(v, path)
	case k == reflect.Map:
		return entriesCross(v, path)
	case (k == reflect.Slice || k == reflect.Array) && (!flatKind(t.Elem()) || t.Elem().Kind() == reflect.String):
		for i := range v.Len() {
			if err := crosses(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func fieldsCross(v reflect.Value, path string) error {
	for i := range v.NumField() {
		f, of := v.Type().Field(i), v.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		empty := strings.Contains(options, "omitempty") && (of.Kind() == reflect.Slice || of.Kind() == reflect.Map) && of.Len() == 0
		inner := path
		switch {
		case f.Tag.Get("json") == "-", empty, strings.Contains(options, "omitzero") && of.IsZero():
			continue
		case promotes(f) && name == "":
		case !f.IsExported():
			continue
		default:
			if name == "" {
				name = f.Name
			}
			inner = strings.TrimPrefix(path+"."+name, ".")
		}
		if err := crosses(of, inner); err != nil {
			return err
		}
	}
	return nil
}

func entriesCross(v reflect.Value, path string) error {
	for it := v.MapRange(); it.Next(); {
		at := fmt.Sprintf("%s[%.40q]", path, fmt.Sprint(it.Key()))
		err := crosses(it.Key(), at)
		if err == nil {
			err = crosses(it.Value(), at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var integer = regexp.MustCompile(`^number -?[0-9]+$`)

// jsonHint says what to do about JSON that Python writes, or wants, and Go does not have; "" if the
// error is about something else.
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
