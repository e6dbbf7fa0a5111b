package codec

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// CheckPython returns why Python's runnel could not read the JSON of a record, or would read a
// different record; nil if it reads the same one.
func CheckPython(record any) error {
	if record == nil {
		return nil
	}
	return crosses(reflect.ValueOf(record), "")
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
			inner = strings.TrimPrefix(path+"."+cmp.Or(name, f.Name), ".")
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
