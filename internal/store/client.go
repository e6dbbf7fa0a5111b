package store

import (
	"context"

	"github.com/runnel-go/runnel/internal/groupcommit"
)

// A Client runs the framework's commands. Its methods may be called concurrently.
type Client struct {
	*Conn
	metas   metaCache
	gathers perNode[*part, answer]
}

// Open returns a client without any I/O.
func Open(o Options) (*Client, error) {
	conn, err := openConn(o)
	if err != nil {
		return nil, err
	}
	c := &Client{Conn: conn}
	c.gathers.open = c.newGather
	return c, nil
}

func (c *Client) newGather() *groupcommit.Group[*part, answer] {
	return &groupcommit.Group[*part, answer]{
		Send: c.send, Unsent: func(err error) answer { return answer{err: err} },
		Weigh: loadOf, Limit: groupcommit.Load{Items: recordsPerCall, Bytes: bytesPerCall},
	}
}

// gathered sends the next records of parts, alone or with those of others.
func (c *Client) gathered(ctx context.Context, parts []*part) ([]answer, error) {
	return c.gathers.do(ctx, c.cluster, parts, func(p *part) string { return p.Log })
}
