package runnel

import (
	"strings"

	"github.com/runnel-go/runnel/codec"
)

// pythonPrefix begins the name of each partitioner that agrees with one of Python's runnel.
const pythonPrefix = "python-"

// encodeFor encodes a record with the stream's codec, if all readers can read the result
// as JSON: a partitioner of Python's means that Python reads the stream.
func encodeFor(o *StreamOptions, record any) ([]byte, error) {
	data, err := codec.EncodeWithin(o.Codec, record, o.MaxRecord)
	if err == nil && strings.HasPrefix(o.Partitioner.Name, pythonPrefix) && strings.HasSuffix(o.Codec.Name(), codec.JSON.Name()) {
		err = codec.CheckPython(record)
	}
	return data, err
}
