package conformance_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func panics(t *testing.T, fn func()) (text string) {
	t.Helper()
	defer func() {
		if text = fmt.Sprint(recover()); text == "<nil>" {
			t.Error("no panic")
		}
	}()
	fn()
	return ""
}

// Mistakes of registration panic, and the text names them.
func TestRegistrationMistakes(t *testing.T) {
	nothing := runnel.Each(func(context.Context, *runnel.Event, parcel) error { return nil })
	fresh := func() *runnel.App { return runnel.New("post", nil) }
	stream := func(a *runnel.App) *runnel.Stream[parcel] { return runnel.NewStream(a, "parcels", parcelKey, nil) }
	tests := []struct {
		name string
		fn   func()
		want []string
	}{
		{"two processors of one name", func() {
			s := stream(fresh())
			s.Process("check", nothing, nil)
			s.Process("check", nothing, nil)
		}, []string{"stream parcels", "check", "already"}},
		{"two streams of one name", func() { a := fresh(); stream(a); stream(a) }, []string{"app post", "parcels", "already"}},
		{"name of an app", func() { runnel.New("po.st", nil) }, []string{`"po.st"`}},
		{"name of a stream", func() { runnel.NewStream(fresh(), "par cels", parcelKey, nil) }, []string{"app post", `"par cels"`}},
		{"name of a processor", func() { stream(fresh()).Process("check@home", nothing, nil) }, []string{"stream parcels", `"check@home"`}},
		{"empty name", func() { stream(fresh()).Process("", nothing, nil) }, []string{"stream parcels", `""`}},
		{"long name", func() { stream(fresh()).Process(strings.Repeat("x", 65), nothing, nil) }, []string{"stream parcels", "64"}},
		{"no function", func() { stream(fresh()).Process("check", nil, nil) }, []string{"stream parcels", "check", "nil"}},
		{"expiry too short", func() {
			stream(fresh()).Process("check", nothing, &runnel.ProcessorOptions{Lease: time.Millisecond})
		}, []string{"stream parcels", "check", "Lease 1ms"}},
		{"partitions", func() {
			runnel.NewStream(fresh(), "parcels", parcelKey, &runnel.StreamOptions{Partitions: -1})
		}, []string{"parcels", "Partitions -1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if text := panics(t, tt.fn); !containsAll(text, tt.want...) {
				t.Errorf("the panic does not name %q: %s", tt.want, text)
			}
		})
	}
}

// Every problem with the server or the connection is reported at the start, without the password,
// by workers and producers.
func TestWrongServer(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "hunter2hunter2")
	_, port, _ := net.SplitHostPort(locked.Addr())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	tests := []struct {
		name, url string
		want      []string
	}{
		{"not a URL", "redis//user:sesame@127.0.0.1:6379", []string{"redis URL", "malformed"}},
		{"another scheme", "http://user:sesame@127.0.0.1:6379", []string{"redis URL", "malformed"}},
		{"bad database", "redis://user:sesame@127.0.0.1:6379/abc", []string{"redis URL", "malformed"}},
		{"no server there", "redis://user:sesame@" + nobody, []string{nobody, "connection refused"}},
		{"no password", "redis://" + locked.Addr(), []string{port, "password"}},
		{"wrong password", "redis://:sesame@" + locked.Addr(), []string{port, "wrong user name or password"}},
		{"wrong user", "redis://user:sesame@" + locked.Addr(), []string{port, "wrong user name or password"}},
		{"too old", "redis://" + fakeServer(t, "5.0.7"), []string{"5.0.7", "7.0"}},
		{"without streams", "redis://" + fakeServer(t, "2.8.24"), []string{"2.8.24", "7.0"}},
		{"no version, without streams", "redis://" + fakeServer(t, ""), []string{"scripts", "unknown command"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			app := runnel.New("post", &runnel.Options{RedisURL: tt.url, Logger: new(logbook).Logger()})
			defer app.Close()
			s := runnel.NewStream(app, "parcels", parcelKey, nil)
			s.Process("check", runnel.Each(func(context.Context, *runnel.Event, parcel) error { return nil }), nil)
			began := time.Now()
			err := app.Run(t.Context())
			t.Logf("Run, after %v: %v", time.Since(began).Round(time.Millisecond), err)
			names(t, err, append(tt.want, "app post")...)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			sent := s.Send(ctx, parcel{Key: "k"})
			t.Logf("Send: %v", sent)
			names(t, sent, "stream parcels")
			for _, err := range []error{err, sent} {
				if err != nil && containsAny(err.Error(), "sesame", "hunter2") {
					t.Errorf("the error shows the password: %v", err)
				}
			}
		})
	}
}

func containsAny(s string, texts ...string) bool {
	for _, text := range texts {
		if strings.Contains(s, text) {
			return true
		}
	}
	return false
}

// fakeServer answers only PING and INFO, as a server of that version, and returns its address.
func fakeServer(t *testing.T, version string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveFake(c, version)
		}
	}()
	return l.Addr().String()
}

func serveFake(c net.Conn, version string) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		reply := fmt.Sprintf("-ERR unknown command '%s'\r\n", args[0])
		switch strings.ToUpper(args[0]) {
		case "PING":
			reply = "+PONG\r\n"
		case "INFO":
			if version != "" {
				info := "# Server\r\nredis_version:" + version + "\r\n"
				reply = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
			}
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) (args []string, err error) {
	n, err := readCount(r, '*')
	for range n {
		size, err := readCount(r, '$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+len("\r\n"))
		for read := 0; read < len(b); {
			k, err := r.Read(b[read:])
			if err != nil {
				return nil, err
			}
			read += k
		}
		args = append(args, string(b[:size]))
	}
	if err == nil && len(args) == 0 {
		err = errors.New("empty command")
	}
	return args, err
}

func readCount(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("line %q", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
