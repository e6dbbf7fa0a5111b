package store

import (
	"context"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Client runs the framework's commands. Its methods may be called concurrently.
type Client struct {
	*redisconn.Conn
	keys    keys.Keys
	metas   metaCache
	batches redisconn.PerNode[*part, answer]
}

// Open returns a client without any I/O.
func Open(o redisconn.Options) (*Client, error) {
	conn, err := redisconn.Open(o)
	if err != nil {
		return nil, err
	}
	c := &Client{Conn: conn, keys: o.Keys}
	c.batches.Open = c.newBatch
	return c, nil
}

func (c *Client) newBatch() *groupcommit.Group[*part, answer] {
	return &groupcommit.Group[*part, answer]{
		Send: c.send, Unsent: func(err error) answer { return answer{err: err} },
		Weigh: loadOf, Limit: groupcommit.Load{Items: recordsPerCall, Bytes: bytesPerCall},
	}
}

// sendBatched sends the next records of parts, alone or with those of others.
func (c *Client) sendBatched(ctx context.Context, parts []*part) ([]answer, error) {
	return c.batches.Do(ctx, c.Conn, parts, func(p *part) string { return p.Log })
}
