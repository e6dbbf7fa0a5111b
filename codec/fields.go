package codec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Fields writes one native Redis field per field of a struct, as text, and so needs
// no payload field. It is a FieldCodec and a TypeChecker: records are flat structs of
// numbers, strings, bools and byte slices, or of named types of these kinds.
//
// A field is named by its json tag or its Go name; unexported fields and the tag "-"
// are left out; omitempty has no effect. Bools are true and false, and are also read
// as Python writes them, True and False; floats have as many digits as they need. A
// missing field decodes to its zero value, an unknown one is ignored, one that does
// not fit is an error that names it. An empty byte slice comes back nil.
var Fields Codec = nativeFields{}

type nativeFields struct{}

var errFieldsOnly = errors.New("fields: the codec has no payload; it reads and writes Redis fields")

func (nativeFields) Name() string { return "fields" }

// Encode always fails: see EncodeFields.
func (nativeFields) Encode(any) ([]byte, error) { return nil, errFieldsOnly }

// Decode always fails: see DecodeFields.
func (nativeFields) Decode([]byte, any) error { return errFieldsOnly }

func (nativeFields) Check(record reflect.Type) error {
	_, err := flatOf(record)
	return err
}

func (nativeFields) EncodeFields(record any) ([]string, error) {
	v := reflect.ValueOf(record)
	if !v.IsValid() {
		return nil, errors.New("fields: nil is not a struct")
	}
	flat, err := flatOf(v.Type())
	if err != nil {
		return nil, err
	}
	fields := make([]string, 0, 2*len(flat))
	for _, f := range flat {
		fields = append(fields, f.name, textOf(v.Field(f.index)))
	}
	return fields, nil
}

func (nativeFields) DecodeFields(fields map[string]string, record any) error {
	v := reflect.ValueOf(record)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("fields: cannot decode into %T, which is not a pointer", record)
	}
	v = v.Elem()
	flat, err := flatOf(v.Type())
	if err != nil {
		return err
	}
	for _, f := range flat {
		text, ok := fields[f.name]
		if !ok {
			v.Field(f.index).SetZero()
			continue
		}
		if why := setText(v.Field(f.index), text); why != "" {
			return fmt.Errorf("decode %T: field %s: %.64q %s", record, f.name, text, why)
		}
	}
	return nil
}

// textOf formats v, whose kind flatField has accepted.
func textOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Slice:
		return string(v.Bytes())
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	}
	return strconv.FormatInt(v.Int(), 10)
}

// setText parses text into v, whose kind flatField has accepted. It returns what is
// wrong with the text.
func setText(v reflect.Value, text string) (why string) {
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "True" && text != "false" && text != "False" {
			return "is no bool"
		}
		v.SetBool(text == "true" || text == "True")
	case reflect.Slice:
		if v.SetZero(); text != "" {
			v.SetBytes([]byte(text))
		}
	case reflect.Float32, reflect.Float64:
		var f float64
		if f, err = parseFloat(text, v.Type().Bits()); err == nil {
			v.SetFloat(f)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var n uint64
		if n, err = strconv.ParseUint(text, 10, v.Type().Bits()); err == nil {
			v.SetUint(n)
		}
	default:
		var n int64
		if n, err = strconv.ParseInt(text, 10, v.Type().Bits()); err == nil {
			v.SetInt(n)
		}
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "is out of the range of " + v.Type().String()
	case err != nil:
		return "is no " + v.Kind().String()
	}
	return ""
}

// parseFloat refuses the hexadecimal form, which no other language writes.
func parseFloat(text string, bits int) (float64, error) {
	if strings.ContainsAny(text, "xX_") {
		return math.NaN(), strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, bits)
}

// A flatField is one field of a struct that Fields accepts.
type flatField struct {
	name  string
	index int
}

var flats sync.Map // reflect.Type to []flatField

func flatOf(t reflect.Type) ([]flatField, error) {
	if flat, ok := flats.Load(t); ok {
		return flat.([]flatField), nil
	}
	flat, err := flatten(t)
	if err != nil {
		return nil, err
	}
	flats.Store(t, flat)
	return flat, nil
}

func flatten(t reflect.Type) ([]flatField, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("fields: %s is not a struct", t)
	}
	flat := make([]flatField, 0, t.NumField())
	seen := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" || !f.IsExported() && !promotes(f) {
			continue
		}
		name = cmp.Or(name, f.Name)
		switch first, twice := seen[name]; {
		case !flatKind(f.Type):
			return nil, fmt.Errorf("fields: %s: field %s is a %s; only numbers, strings, bools and []byte have a native form", t, f.Name, f.Type)
		case strings.HasPrefix(name, "__"):
			return nil, fmt.Errorf("fields: %s: field %s: the name %s is reserved, as all that begin with __", t, f.Name, name)
		case twice:
			return nil, fmt.Errorf("fields: %s: fields %s and %s have the same name %s", t, first, f.Name, name)
		}
		seen[name] = f.Name
		flat = append(flat, flatField{name, i})
	}
	if len(flat) == 0 {
		return nil, fmt.Errorf("fields: %s has no field to write", t)
	}
	return flat, nil
}

// promotes reports whether f is embedded and may have exported fields, so that to
// leave it out would lose something.
func promotes(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return f.Anonymous && t.Kind() == reflect.Struct
}

func flatKind(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	}
	return false
}
