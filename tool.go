package parley

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Tool is a mid call tool: an HTTP endpoint of the user's that an assistant may
// call during a conversation.
type Tool struct {
	ID          ID
	UserID      ID
	Name        string
	Description string
	Endpoint    string
	Method      string
	Timeout     int // seconds
	Headers     []Header
	Schema      []Param
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Header is sent with a tool's request. Its value is a secret: sealed at rest,
// shown to its owner only.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Param is something to be learnt from a conversation: a tool's parameter, or a
// line of an assistant's post-call evaluation.
type Param struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

// The two texts of one rule: the first heads the answer, the second is the field's.
const (
	toolNameRule  = "The name field must contain only lowercase letters and underscores, and start with a letter."
	toolNameField = "Tool name must contain only lowercase letters and underscores, and start with a letter."
)

// ToolForm is the table of a mid call tool.
var ToolForm = Form[Tool]{
	{Name: "id", At: func(t *Tool) any { return &t.ID }, Rule: Rule{ReadOnly: true}, Example: 7},
	{Name: "name", At: func(t *Tool) any { return &t.Name },
		// Language models take function names of at most 64 characters.
		Rule:   Rule{Required: true, Match: regexp.MustCompile(`^[a-z][a-z_]*$`), MatchText: toolNameField, Max: 64},
		Effect: "The name under which the model calls the tool: lowercase letters and underscores, starting with a letter.", Example: "get_order_status"},
	{Name: "description", At: func(t *Tool) any { return &t.Description }, Rule: Rule{Required: true, Max: 255},
		Effect: "Tells the model when and how to use the tool.", Example: "Looks up the status of an order by its number."},
	{Name: "endpoint", At: func(t *Tool) any { return &t.Endpoint }, Rule: Rule{Required: true, Max: 2048, Check: endpoint},
		Effect: "The address called. {param} is replaced by that parameter, {{variable}} by a variable of the call.", Example: "https://shop.example.com/orders/{order_number}"},
	{Name: "method", At: func(t *Tool) any { return &t.Method }, Rule: Rule{Required: true, In: []string{"GET", "POST", "PUT", "PATCH", "DELETE"}},
		Effect: "GET and DELETE carry the parameters in the query, the others in a JSON body.", Example: "GET"},
	{Name: "timeout", At: func(t *Tool) any { return &t.Timeout }, Rule: Rule{Min: 1, Max: 30}, Default: 10,
		Effect: "Seconds after which the assistant goes on without the answer.", Example: 10},
	{Name: "headers", At: func(t *Tool) any { return &t.Headers }, Rule: Rule{Max: 50, Each: headerForm}, Default: []Header{},
		Effect: "Sent with the request. Encrypted at rest; never shown to the model, the transcript or a log.", Example: []Header{{"X-Api-Key", "s3cret"}}},
	{Name: "schema", At: func(t *Tool) any { return &t.Schema }, Rule: Rule{Max: 50, Each: toolParamForm}, Default: []Param{},
		Effect: "The parameters the assistant extracts from the conversation.", Example: []Param{{"order_number", "string", "The order number the customer reads out."}}},
	{Name: "created_at", At: func(t *Tool) any { return &t.CreatedAt }, Rule: Rule{ReadOnly: true}},
	{Name: "updated_at", At: func(t *Tool) any { return &t.UpdatedAt }, Rule: Rule{ReadOnly: true}},
}

var headerForm = Form[Header]{
	{Name: "name", At: func(h *Header) any { return &h.Name }, Rule: Rule{Required: true, Max: 255, Check: headerName}},
	{Name: "value", At: func(h *Header) any { return &h.Value }, Rule: Rule{Required: true, Max: 8192, Check: headerValue}},
}

var toolParamForm = Form[Param]{
	{Name: "name", At: func(p *Param) any { return &p.Name }, Rule: Rule{Required: true, Min: 2, Max: 32, Match: regexp.MustCompile(`^[A-Za-z][A-Za-z_]*$`)}},
	{Name: "type", At: func(p *Param) any { return &p.Type }, Rule: Rule{Required: true, In: []string{"string", "number", "boolean"}}},
	{Name: "description", At: func(p *Param) any { return &p.Description }, Rule: Rule{Required: true, Min: 3, Max: 255}},
}

// CreateTool makes a tool from a request. Its error's message heads the answer:
// the rule's text when the name breaks it, else the first field's message.
func CreateTool(in Input) (*Tool, error) {
	tool := &Tool{}
	_, errs := ToolForm.Create(in, tool)
	distinct(&errs, "schema", tool.Schema)
	if len(errs) == 0 {
		return tool, nil
	}
	message := firstOf(errs)
	for _, e := range errs {
		if e.Field == "name" && e.Messages[0] == toolNameField {
			message = toolNameRule
		}
	}
	return nil, &Error{Code: Invalid, Message: message, Fields: errs}
}

// Update changes a tool to what a request supplies.
func (t *Tool) Update(in Input) error {
	_, errs := ToolForm.Update(in, t)
	distinct(&errs, "schema", t.Schema)
	return invalid(errs, ValidationFailed)
}

// ValidationFailed heads the answer of most refused requests.
const ValidationFailed = "Validation failed"

// DataInvalid heads the answer of refused webhook, call and campaign operations.
const DataInvalid = "The given data was invalid."

func invalid(errs FieldErrors, message string) error {
	if len(errs) == 0 {
		return nil
	}
	return &Error{Code: Invalid, Message: message, Fields: errs}
}

// firstOf is the first message and how many more there are.
func firstOf(errs FieldErrors) string {
	message := errs[0].Messages[0]
	switch more := errs.Count() - 1; {
	case more == 1:
		message += " (and 1 more error)"
	case more > 1:
		message += " (and " + strconv.Itoa(more) + " more errors)"
	}
	return message
}

// distinct refuses a second parameter of the same name: the model could not tell them apart.
func distinct(errs *FieldErrors, list string, params []Param) {
	if errs.Under(list) {
		return
	}
	seen := map[string]bool{}
	for i, p := range params {
		if seen[p.Name] {
			path := list + "." + strconv.Itoa(i) + ".name"
			errs.Add(path, "The "+Spaced(path)+" field has a duplicate value.")
		}
		seen[p.Name] = true
	}
}

var placeholder = regexp.MustCompile(`\{\{?\s*[A-Za-z_][A-Za-z0-9_.]*\s*\}?\}`)

// endpoint checks a tool's address, which may hold {param} and {{variable}}. A
// {param} is what somebody said on the telephone: it must not choose the host.
func endpoint(s string) string {
	if place.MatchString(RenderFunc(splitEndpoint(s).authority, func(string) string { return "x" })) {
		return "must hold {param} in its path or query only."
	}
	return URL(placeholder.ReplaceAllString(s, "x"))
}

// URL checks an http or https address.
func URL(s string) string {
	const wrong = "must be a valid URL."
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return wrong
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return wrong
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return wrong
		}
	}
	return ""
}

var headerToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// headerName keeps out what would break the request's own framing (RFC 9112, 6 and 9.6).
func headerName(s string) string {
	if !headerToken.MatchString(s) {
		return "must be a valid HTTP header name."
	}
	switch strings.ToLower(s) {
	case "connection", "content-length", "host", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive":
		return "must not be a header that frames the request."
	}
	return ""
}

func headerValue(s string) string {
	for _, r := range s {
		if r < ' ' && r != '\t' || r == 0x7f {
			return "must not contain control characters."
		}
	}
	return ""
}
