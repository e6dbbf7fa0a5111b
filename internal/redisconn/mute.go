package redisconn

import "github.com/redis/go-redis/v9/logging"

// MuteDialErrors turns off what go-redis prints by itself, for the whole process: each of
// these errors is also returned, and told by whoever it was returned to.
func MuteDialErrors() { logging.Disable() }
