package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/runnel-go/runnel/python"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/store"
)

// Partitioner returns a stream's partitioner if it is a built-in one.
func Partitioner(stream string, meta store.Meta) (*runnel.Partitioner, error) {
	for _, p := range []*runnel.Partitioner{
		runnel.XXHash, python.Partitioner, python.IntPartitioner, python.MD5Partitioner, python.IntMD5Partitioner,
	} {
		if p.Name == meta.Partitioner {
			return p, nil
		}
	}
	return nil, fmt.Errorf("stream %s has the partitioner %q, which only the app knows", stream, meta.Partitioner)
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// KeyOf finds the key in a record of a stream with this metadata.
func KeyOf(meta store.Meta, record []byte) (string, error) {
	name := meta.KeyField
	if name == "" {
		return "", errors.New("the key is not known: the stream has no KeyField, so say it with --key, or give the stream a KeyField in the app")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(record, &object); err != nil || object == nil {
		return "", fmt.Errorf("a record is a JSON object with the key in %q, or has its key in --key", name)
	}
	value, ok := object[name]
	var text string
	switch {
	case !ok:
		return "", fmt.Errorf("the record has no field %q, which is the stream's key; add it, or say the key with --key", name)
	case value[0] == '"':
		err := json.Unmarshal(value, &text)
		return text, err
	case integer.Match(value):
		return string(value), nil
	}
	return "", fmt.Errorf("the key in field %q is neither a string nor a whole number; say the key with --key", name)
}
