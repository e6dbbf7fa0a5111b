package runnel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// decodeStrict decodes JSON that a person wrote: an unknown or ill-typed field, or
// null in place of a record, is an error that names it.
func decodeStrict(data []byte, record any) (err error) {
	defer recoverInto(&err)
	if string(bytes.TrimSpace(data)) == "null" {
		return fmt.Errorf("decode %T: json: null is no record", record)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(record); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("decode %T: json: the text ends too early: %w", record, io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("decode %T: %w", record, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("decode %T: json: more than one value", record)
	}
	return nil
}
