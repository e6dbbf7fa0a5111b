package redisconn

import "github.com/redis/go-redis/v9/logging"

// MuteDialErrors turns off the log output of go-redis for the whole process: each of
// these errors is also returned to a caller, which logs it.
func MuteDialErrors() { logging.Disable() }
