package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redactHook removes command arguments from error replies. A server or a proxy that does not know a
// command repeats its arguments: the password of AUTH, the data of others.
type redactHook struct{}

func (redactHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (redactHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := redacted(next(ctx, cmd))
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

func (redactHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := redacted(next(ctx, cmds))
		if err == nil {
			return nil
		}
		for _, cmd := range cmds {
			cmd.SetErr(redacted(cmd.Err()))
		}
		return err
	}
}

// redacted returns an error without the arguments of the command that an error reply repeats.
func redacted(err error) error {
	if IsReply(err) {
		if text, _, has := strings.Cut(err.Error(), ", with args beginning with:"); has {
			return ScriptError(text)
		}
	}
	return err
}

// parseURL parses a URL; its errors show neither password nor query.
func parseURL(raw string) (*redis.Options, error) {
	_, fragment, _ := strings.Cut(raw, "#")
	opt, err := redis.ParseURL(raw)
	// Without "//" what follows the scheme names no server, and the default one would be taken.
	if err == nil && !strings.ContainsRune(fragment, '@') && (strings.Contains(raw, "://") || strings.HasPrefix(raw, "unix:")) {
		return opt, nil
	}
	shown := masked(raw)
	if plain, _, _ := strings.Cut(raw, "?"); err == nil || shown != plain {
		// What failed to parse, or what was taken for host and port, may be a part of the
		// password.
		return nil, fmt.Errorf("redis URL %q is malformed; want redis://host:6379, or with user:password@ before the host, where what is special in these is written as %%3F for ? or %%23 for #", shown)
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	return nil, fmt.Errorf("redis URL %q is malformed: %w", shown, err)
}

// masked is a URL without what may be a part of a password.
func masked(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !plainScheme.MatchString(scheme) {
		// A URL that is only a password has no scheme either.
		if at := strings.LastIndexByte(raw, '@'); at >= 0 {
			return "***" + raw[at:]
		}
		if plainAddress.MatchString(raw) {
			return raw
		}
		return "***"
	}
	authority, after, _ := strings.Cut(rest, "?")
	if strings.ContainsRune(after, '@') { // a question mark in the password, or an address in an option
		return scheme + "://***"
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		return scheme + "://***" + authority[at:]
	}
	host, _, _ := strings.Cut(authority, "/")
	if !strings.HasPrefix(host, "[") && strings.Contains(host, ":") && !plainPort.MatchString(host) { // user and password without a host
		return scheme + "://***"
	}
	return scheme + "://" + authority
}

var (
	plainPort    = regexp.MustCompile(`^[^:]*:[0-9]*$`)
	plainScheme  = regexp.MustCompile(`^(rediss?(\+sentinel|\+cluster)?|unix|https?|tcp)?$`)
	plainAddress = regexp.MustCompile(`^(localhost|[0-9]+(\.[0-9]+){3}|\[[0-9a-fA-F:]+\])(:[0-9]+)?$`)
)
