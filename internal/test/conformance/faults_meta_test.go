package conformance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runnel-go/runnel/python"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A program whose declaration contradicts the stream's metadata neither sends nor processes, and
// its error names both values.
func TestMetadataConflict(t *testing.T) {
	tests := []struct {
		name   string
		change func(*runnel.Options)
		want   []string
	}{
		{"partitions", func(o *runnel.Options) { o.Stream.Partitions = 32 }, []string{"partitions", "16", "32"}},
		{"codec", func(o *runnel.Options) { o.Stream.Codec = codec.Gzip(codec.JSON) }, []string{"codec", "msgpack", "gzip+json"}},
		{"partitioner", func(o *runnel.Options) { o.Stream.Partitioner = python.Partitioner }, []string{"partitioner", "xxh64", "python-repr-xxh64"}},
		{"key layout", func(o *runnel.Options) { o.KeyLayout = runnel.LayoutCluster }, []string{"key layout", "standalone", "cluster"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			rdb := srv.Client(t)
			newParcelApp(t, srv.URL(), "first", nil).send(parcel{Key: "k", Seq: 1})
			before := dump(t, srv)

			other := newParcelApp(t, srv.URL(), "other", tt.change)
			other.parcels.Process("check", runnel.Each(func(_ context.Context, e *runnel.Event, _ parcel) error {
				t.Errorf("event %s was processed", e.ID)
				return nil
			}), nil)
			for what, err := range map[string]error{
				"Send": other.parcels.Send(t.Context(), parcel{Key: "k", Seq: 2}),
				"Run":  other.run().ended(30 * time.Second),
			} {
				t.Logf("%s: %v", what, err)
				names(t, err, append(tt.want, "stream parcels")...)
				if conflict := (*store.MetaConflictError)(nil); !errors.As(err, &conflict) {
					t.Errorf("%s: not a conflict of metadata", what)
				}
			}
			if after := dump(t, srv); after != before {
				t.Errorf("there are %d keys, were %d: %q", after, before, rdb.Keys(t.Context(), "*").Val())
			}
			if n := rdb.XLen(t.Context(), partitionKey(runnel.XXHash.Func("k", 16))).Val(); n != 1 {
				t.Errorf("%d events in the partition, want the first one only", n)
			}
		})
	}
}

func dump(t *testing.T, srv *redistest.Server) int64 {
	t.Helper()
	n, err := srv.Client(t).DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
