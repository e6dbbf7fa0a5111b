package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	actionPatience = time.Minute
	mostBody       = 64 << 10
	mostChosen     = mostListed // events of one action

	// Maximum bytes of what the audit has of an action.
	mostWho, mostOn, mostWhy = 100, 300, 500
)

// A command is the request of an action, which determines the fields it needs.
type command struct {
	Who string `json:"who"`
	Why string `json:"why"`

	Processor string   `json:"processor"` // STREAM/PROCESSOR
	Stream    string   `json:"stream"`
	Partition *int     `json:"partition"`
	IDs       []string `json:"ids"` // PARTITION/ID
	Skip      bool     `json:"skip"`
	Scope     string   `json:"scope"` // of a rule
	For       string   `json:"for"`   // how long a rule lasts, "" for until it is removed

	from string
}

// An action executes a command. Even beside an error it returns what was done, as a sentence.
type action struct {
	on func(c *command) string // the subject of the command, for the audit
	do doer
}

var actions = map[string]action{
	"pause":       {ofScope, setRule(admin.RulePause)},
	"block":       {ofScope, setRule(admin.RuleBlock)},
	"resume":      {ofScope, removeRule(admin.RulePause)},
	"unblock":     {ofScope, removeRule(admin.RuleBlock)},
	"release":     {ofPartition, release},
	"replay":      {ofProcessor, changeLetters("replayed", replay)},
	"retry-dead":  {ofProcessor, changeLetters("retried", (*admin.DeadLetters).Retry)},
	"drop":        {ofProcessor, changeLetters("dropped", (*admin.DeadLetters).Drop)},
	"retry-now":   {ofProcessor, changeParked("due now", (*admin.Parked).Retry)},
	"drop-parked": {ofProcessor, changeParked("given up", (*admin.Parked).Drop)},
	"cancel":      {ofStream, changeDelayed("cancelled", (*admin.Delayed).Cancel)},
	"fire":        {ofStream, changeDelayed("due now", (*admin.Delayed).Fire)},
}

func ofScope(c *command) string     { return c.Scope }
func ofStream(c *command) string    { return c.Stream }
func ofProcessor(c *command) string { return c.Processor }
func ofPartition(c *command) string {
	if c.Partition == nil {
		return c.Processor
	}
	return fmt.Sprintf("%s/%d", c.Processor, *c.Partition)
}

func (d *dashboard) token(w http.ResponseWriter, r *http.Request) {
	if code, err := d.guard.admit(r); err != nil {
		refuse(w, code, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// outcome is the answer to an action.
type outcome struct {
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
	Audit  string `json:"audit,omitempty"` // why the outcome is not in the audit stream
}

func (d *dashboard) act(w http.ResponseWriter, r *http.Request) {
	if code, err := d.guard.admit(r); err != nil {
		refuse(w, code, err)
		return
	}
	name := r.PathValue("name")
	todo, ok := actions[name]
	if !ok {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no action %q", name))
		return
	}
	cmd, err := commandOf(w, r)
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	note := store.Audit{Who: cmd.Who, From: cmd.from, What: name, On: cut(todo.on(cmd), mostOn).Text, Why: cmd.Why, Detail: cmd.detail()}
	d.perform(w, r, note, func(ctx context.Context, c *store.Client) (string, error) {
		return d.onPart(ctx, c, name, cmd, todo.do)
	})
}

// perform does an action that was admitted, and answers.
func (d *dashboard) perform(w http.ResponseWriter, r *http.Request, note store.Audit, do func(context.Context, *store.Client) (string, error)) {
	c, err := d.reg.Client()
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	// A begun action is completed, and its outcome recorded, even if the page is closed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actionPatience)
	defer cancel()
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actionPatience + writePatience))
	code, out := audited(ctx, c, note, func(ctx context.Context) (string, error) { return do(ctx, c) })
	answer(w, code, out)
}

// audited calls an action between two entries in the audit stream, unless the first cannot be
// written.
func audited(ctx context.Context, c *store.Client, note store.Audit, do func(context.Context) (string, error)) (code int, out outcome) {
	result, unnoted, err := c.Audited(ctx, note, do)
	out.Result, code = result, http.StatusOK
	if err != nil {
		code, out.Error = codeOf(err), err.Error()
	}
	if unnoted != nil && !errors.Is(err, unnoted) {
		out.Audit = unnoted.Error()
	}
	return code, out
}

// bodyOf reads the JSON of an action.
func bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return nil, &requestError{http.StatusUnsupportedMediaType, "an action is JSON"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, &requestError{http.StatusRequestEntityTooLarge, "the request is too large"}
	}
	if err != nil {
		return nil, badRequest("this is no action: %v", err)
	}
	return body, nil
}

// fromOf returns where a request came from, for the audit.
func fromOf(r *http.Request) string {
	from := addressOf(r)
	if through := r.Header.Get("X-Forwarded-For"); through != "" {
		from += " for " + cut(through, 100).Text
	}
	return from
}

func commandOf(w http.ResponseWriter, r *http.Request) (*command, error) {
	text, err := bodyOf(w, r)
	if err != nil {
		return nil, err
	}
	body := json.NewDecoder(bytes.NewReader(text))
	body.DisallowUnknownFields()
	cmd := &command{}
	if err := body.Decode(cmd); err != nil {
		return nil, badRequest("this is no action: %v", err)
	}
	if len(cmd.IDs) > mostChosen {
		return nil, badRequest("at most %d events at a time", mostChosen)
	}
	cmd.Who, cmd.Why, cmd.from = cut(cmd.Who, mostWho).Text, cut(cmd.Why, mostWhy).Text, fromOf(r)
	return cmd, nil
}

// detail returns what the audit records beside the subject.
func (c *command) detail() string {
	var parts []string
	if len(c.IDs) > 0 {
		parts = append(parts, strings.Join(c.IDs, " "))
	}
	if c.Skip {
		parts = append(parts, "skip")
	}
	if c.For != "" {
		parts = append(parts, "for "+c.For)
	}
	return cut(strings.Join(parts, ", "), mostBody).Text
}
