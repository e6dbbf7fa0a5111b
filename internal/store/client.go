package store

import "github.com/runnel-go/runnel/internal/redisconn"

// A Client runs the framework's commands. It embeds its parts, which share connections and the
// metadata cache; code that needs only one can take that. Its methods may be called concurrently.
type Client struct {
	*core
	MetaStore
	Producer
	DelayedStore
	Owner
	RetryStore
	TableStore
	Control
	TaskStore
	RuleStore
	ACL
	AuditLog
	Viewer
	Operator
}

// Open returns a client without any I/O.
func Open(o redisconn.Options) (*Client, error) {
	conn, err := redisconn.Open(o)
	if err != nil {
		return nil, err
	}
	c := &core{Conn: conn, keys: o.Keys}
	c.batches.Open = Producer{c}.newBatch
	return &Client{
		c, MetaStore{c}, Producer{c}, DelayedStore{c}, Owner{c}, RetryStore{c}, TableStore{c}, Control{c},
		TaskStore{c}, RuleStore{c}, ACL{c}, AuditLog{c}, Viewer{c}, Operator{c},
	}, nil
}
