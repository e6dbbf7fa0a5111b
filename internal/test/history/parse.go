package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

var errTrailing = errors.New("more than one record on a line")

func parse(data []byte) ([]Record, error) {
	var records []Record
	for n := 1; len(data) > 0; n++ {
		line, rest, complete := bytes.Cut(data, []byte("\n"))
		data = rest
		var r Record
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&r)
		if err == nil && decoder.More() {
			err = errTrailing
		}
		if err != nil && !complete {
			return records, nil
		}
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", n, err)
		}
		records = append(records, r)
	}
	return records, nil
}
