package parley

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Placement is where a tool's arguments and a call's variables go in its request.
type Placement struct {
	URL     string
	Shown   string // the URL as records show it, without what may be secret
	Body    []byte // JSON, for POST, PUT and PATCH
	Headers []Header
}

// hidden stands for what may be secret.
const hidden = "***"

// Place puts arguments, which the schema has typed, and values of variables into a
// tool's request. A {param} of the endpoint is not repeated in the query or body. What
// would change the endpoint's meaning is refused: an empty part of a path could name
// a whole collection, and a value must not climb in the path or choose another host.
func (t *Tool) Place(arguments map[string]any, values map[string]string) (Placement, *Failure) {
	p := placing{arguments: arguments, values: values, used: map[string]bool{}}
	for _, param := range t.Schema {
		p.params = append(p.params, param.Name)
	}
	e := splitEndpoint(t.Endpoint)
	authority := p.variables(e.authority, p.inHost)
	path := p.places(p.variables(e.path, p.inPath), p.inPath)
	query, shown := p.query(e.query)
	placed := Placement{}
	switch t.Method {
	case "GET", "DELETE":
		for _, name := range p.rest() {
			pair := url.QueryEscape(name) + "=" + url.QueryEscape(InWords(arguments[name]))
			query, shown = append(query, pair), append(shown, pair)
		}
	default:
		body := make(map[string]any, len(arguments))
		for _, name := range p.rest() {
			body[name] = arguments[name]
		}
		placed.Body, _ = json.Marshal(body) // typed values: texts, finite numbers, booleans
	}
	_, host := cutLast(authority, "@")
	placed.URL = e.scheme + "://" + authority + path + joinQuery(query)
	placed.Shown = e.scheme + "://" + host + path + joinQuery(shown)
	if p.failure == nil && URL(placed.URL) != "" {
		p.refuse("the tool's address is not valid")
	}
	for _, h := range t.Headers {
		placed.Headers = append(placed.Headers, Header{h.Name, oneLine(Render(h.Value, values))})
	}
	return placed, p.failure
}

// placing is the state of one Place.
type placing struct {
	arguments map[string]any
	values    map[string]string
	params    []string
	used      map[string]bool
	failure   *Failure
}

// refuse keeps the first failure.
func (p *placing) refuse(message string) string {
	if p.failure == nil {
		p.failure = &Failure{Kind: Unsendable, Message: message}
	}
	return ""
}

func (p *placing) variables(text string, escape func(name, value string) string) string {
	return RenderFunc(text, func(name string) string { return escape(name, p.values[name]) })
}

// place is a {param}. What was put in for variables holds no braces: they are escaped.
var place = regexp.MustCompile(`\{\s*([A-Za-z][A-Za-z_]*)\s*\}`)

func (p *placing) places(text string, escape func(name, value string) string) string {
	return place.ReplaceAllStringFunc(text, func(braced string) string {
		name := strings.TrimSpace(braced[1 : len(braced)-1])
		if !slices.Contains(p.params, name) {
			return braced
		}
		p.used[name] = true
		value, given := p.arguments[name]
		if !given {
			return p.refuse("the parameter " + name + " is missing")
		}
		return escape(name, InWords(value))
	})
}

// rest are the arguments that stand nowhere in the endpoint, in the schema's order.
func (p *placing) rest() (names []string) {
	for _, name := range p.params {
		if _, given := p.arguments[name]; given && !p.used[name] {
			names = append(names, name)
		}
	}
	return names
}

var hostPart = regexp.MustCompile(`^[A-Za-z0-9._~:-]+$`)

func (p *placing) inHost(name, value string) string {
	if !hostPart.MatchString(value) {
		return p.refuse("the variable " + name + " cannot stand in the host of the tool's address")
	}
	return value
}

func (p *placing) inPath(name, value string) string {
	if value == "" || value == "." || value == ".." {
		return p.refuse("the value of " + name + " cannot stand in the path of the tool's address")
	}
	return url.PathEscape(value)
}

func (p *placing) inQuery(_, value string) string { return url.QueryEscape(value) }

// query fills the endpoint's own query. Only what came from the conversation is
// shown: the rest was fixed by the tool's owner and may be a key.
func (p *placing) query(text string) (sent, shown []string) {
	if text == "" {
		return nil, nil
	}
	for pair := range strings.SplitSeq(text, "&") {
		key, value, equals := strings.Cut(pair, "=")
		filled := p.places(p.variables(value, p.inQuery), p.inQuery)
		key = p.places(p.variables(key, p.inQuery), p.inQuery)
		if !equals {
			sent, shown = append(sent, key), append(shown, key)
			continue
		}
		seen := filled
		if place.ReplaceAllString(value, "") != "" {
			seen = hidden
		}
		sent, shown = append(sent, key+"="+filled), append(shown, key+"="+seen)
	}
	return sent, shown
}

func joinQuery(pairs []string) string {
	if len(pairs) == 0 {
		return ""
	}
	return "?" + strings.Join(pairs, "&")
}

// endpointParts are the parts of an endpoint as it is written, places and all.
type endpointParts struct{ scheme, authority, path, query string }

func splitEndpoint(s string) (e endpointParts) {
	s, _, _ = strings.Cut(s, "#") // a fragment is never sent
	s, e.query, _ = strings.Cut(s, "?")
	e.scheme, s, _ = strings.Cut(s, "://")
	e.authority = s
	if slash := strings.IndexByte(s, '/'); slash >= 0 {
		e.authority, e.path = s[:slash], s[slash:]
	}
	return e
}

// cutLast cuts a text around the last of a separator; without one, all is after it.
func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return "", s
}

// oneLine keeps a value from adding a line to a request's head.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
