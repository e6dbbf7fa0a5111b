package worker

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A course is how a member reads its partitions, and how it stores what is done of them. The goroutine of
// a reader calls read and unsettled, that of an acker confirm, and that of heartbeats renewed.
type course interface {
	// read reads at most count new entries of each partition of a set, and waits for the first. Errors are
	// those of redisconn.Reader.Read.
	read(ctx context.Context, r *reader, set []*partition, logs []string, count int, wait time.Duration) ([]redisconn.Chunk, error)

	// unsettled follows a read that ended with redisconn.ErrUnknownOutcome. When it returns, that read
	// can bring nothing any more that no buffer will have.
	unsettled(ctx context.Context, r *reader, set []*partition)

	// atOnce returns of how many partitions one call of confirm is, where n have acks.
	atOnce(n int) int

	// confirm sends acks of partitions that are ours, in one round trip. It returns those that had some, and for
	// each an error: store.ErrFenced, or one after which the same acks are to be sent again.
	confirm(ctx context.Context, work []*partition) (of []*partition, errs []error)

	// renewed compares what a refresh of the lease has found with what is held, what was sent with it, and what
	// was owed before. It mends what Redis has forgotten.
	renewed(ctx context.Context, p *partition, sent store.LeaseRequest, before prefetch.Owed, r store.LeaseResult) error
}
