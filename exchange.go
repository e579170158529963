package parley

import "fmt"

// Failure is why a request to a user's address yielded nothing. Its message is short,
// can be spoken about, and tells nothing of the network Parley runs in.
type Failure struct {
	Kind    FailureKind `json:"type"`
	Message string      `json:"message"`
}

func (f *Failure) Error() string { return f.Message }

// FailureKind says what kind of failure it was, for machines.
type FailureKind string

// The ways in which a request to a user's address can fail.
const (
	Unsendable  FailureKind = "unsendable"  // the request could not be made from what was given
	Unreachable FailureKind = "unreachable" // unknown, forbidden, refused or silent: they all look the same
	Untrusted   FailureKind = "untrusted"   // its certificate is not valid
	TimedOut    FailureKind = "timeout"     // connected, but not answered in time
	Moved       FailureKind = "redirect"    // redirects are not followed
	BadStatus   FailureKind = "status"      // an answer other than 2xx
	Unreadable  FailureKind = "unreadable"  // neither JSON nor text, or broken off
	Cancelled   FailureKind = "cancelled"   // nobody waits for it any more
)

var failureForm = Form[Failure]{
	{Name: "type", At: func(f *Failure) any { return &f.Kind },
		Rule: Rule{In: []string{string(Unsendable), string(Unreachable), string(Untrusted), string(TimedOut), string(Moved), string(BadStatus), string(Unreadable), string(Cancelled)}}},
	{Name: "message", At: func(f *Failure) any { return &f.Message }},
}

// Exchange is one run of a mid call tool, as its call records it. It holds no header
// and no other secret of the tool's.
type Exchange struct {
	Tool       string         `json:"tool"`
	Method     string         `json:"method"`
	URL        string         `json:"url"`
	Arguments  map[string]any `json:"arguments"`
	Status     int            `json:"status"`
	DurationMS int            `json:"duration_ms"`
	Size       int            `json:"size"`
	Truncated  bool           `json:"truncated"`
	Answer     string         `json:"answer"`
	Failure    *Failure       `json:"error"`
}

// ExchangeForm is the table of an exchange.
var ExchangeForm = Form[Exchange]{
	{Name: "tool", At: func(e *Exchange) any { return &e.Tool }, Rule: readOnly, Effect: "The tool's name."},
	{Name: "method", At: func(e *Exchange) any { return &e.Method }, Rule: readOnly},
	{Name: "url", At: func(e *Exchange) any { return &e.URL }, Rule: readOnly,
		Effect: "The address called, without user name and password; values that stand in the endpoint's own query are shown as ***, for they may be secret."},
	{Name: "arguments", At: func(e *Exchange) any { return &e.Arguments }, Rule: readOnly, Effect: "The parameters sent, typed as the schema says."},
	{Name: "status", At: func(e *Exchange) any { return &e.Status }, Rule: readOnly, Effect: "The HTTP status of the answer; 0 when there was none."},
	{Name: "duration_ms", At: func(e *Exchange) any { return &e.DurationMS }, Rule: readOnly, Effect: "How long it took, in milliseconds."},
	{Name: "size", At: func(e *Exchange) any { return &e.Size }, Rule: readOnly, Effect: "Bytes of the answer that were read, at most 65536."},
	{Name: "truncated", At: func(e *Exchange) any { return &e.Truncated }, Rule: readOnly, Effect: "The answer was longer than what was read."},
	{Name: "answer", At: func(e *Exchange) any { return &e.Answer }, Rule: readOnly, Effect: "What the model is told. Values of the tool's headers are replaced by ***."},
	{Name: "error", At: func(e *Exchange) any { return &e.Failure }, Rule: Rule{ReadOnly: true, Each: failureForm}, Effect: "null when the tool has answered."},
}

// Result is what a model is told of an exchange: the answer, or why there is none.
func (e *Exchange) Result() (string, error) {
	if e.Failure != nil {
		return "", e.Failure
	}
	if e.Answer == "" {
		return fmt.Sprintf("The tool answered with status %d and no content.", e.Status), nil
	}
	return e.Answer, nil
}
