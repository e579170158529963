package simulator

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// reader reads YAML node by node, so that every mistake is told with its file, its
// line and what to write instead: a misspelt expectation must not pass for none.
type reader struct {
	file     string
	mistakes []error
}

// key is a key that a mapping may have, and what reads its value.
type key struct {
	name string
	read func(*yaml.Node)
}

// document is the one value that a file holds; nil is a mistake that has been noted.
func (r *reader) document(raw []byte) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		r.mistakes = append(r.mistakes, fmt.Errorf("%s: this is no YAML: %s", r.file, strings.TrimPrefix(err.Error(), "yaml: ")))
		return nil
	}
	if len(doc.Content) == 0 {
		r.mistakes = append(r.mistakes, fmt.Errorf("%s: the file is empty", r.file))
		return nil
	}
	return doc.Content[0]
}

// wrongf notes a mistake at a node.
func (r *reader) wrongf(n *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
}

// err is all mistakes, each on a line.
func (r *reader) err() error { return errors.Join(r.mistakes...) }

// mapping reads a mapping with these keys and no others.
func (r *reader) mapping(n *yaml.Node, what string, keys []key) {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	r.pairs(n, what, func(name, value *yaml.Node) {
		i := slices.Index(names, name.Value)
		if i < 0 {
			r.wrongf(name, "%s has no key %q; its keys are %s", what, name.Value, strings.Join(names, ", "))
			return
		}
		keys[i].read(value)
	})
}

// pairs reads a mapping of any keys, each once.
func (r *reader) pairs(n *yaml.Node, what string, read func(name, value *yaml.Node)) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		r.wrongf(n, "%s must be a mapping: lines of the form key: value", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if seen[name.Value] {
			r.wrongf(name, "%s has %q twice; write it once", what, name.Value)
			continue
		}
		seen[name.Value] = true
		read(name, n.Content[i+1])
	}
}

// list reads every element of a list.
func (r *reader) list(n *yaml.Node, what string, read func(*yaml.Node)) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.SequenceNode {
		r.wrongf(n, "%s must be a list: lines that begin with a dash", what)
		return
	}
	for _, element := range n.Content {
		read(element)
	}
}

// text reads a value as it is written: 4711 and "4711" are the same words.
func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		r.wrongf(n, "%s must be a text", what)
		return ""
	}
	return strings.TrimSpace(n.Value)
}

func (r *reader) flag(n *yaml.Node, what string) bool {
	if n.Tag != "!!bool" {
		r.wrongf(n, "%s must be true or false", what)
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

func (r *reader) number(n *yaml.Node, what string, least, most float64) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v >= least && v <= most) {
		r.wrongf(n, "%s must be a number from %v to %v", what, least, most)
		return 0
	}
	return v
}

func (r *reader) whole(n *yaml.Node, what string, least, most int) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
		r.wrongf(n, "%s must be a whole number from %d to %d", what, least, most)
		return 0
	}
	return v
}

func (r *reader) duration(n *yaml.Node, what string, most time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > most {
		r.wrongf(n, "%s must be a time such as 600ms or 2s, at most %s", what, most)
		return 0
	}
	return d
}

func (r *reader) pattern(n *yaml.Node, what string) *regexp.Regexp {
	text := r.text(n, what)
	p, err := regexp.Compile(`(?i)` + text)
	if err != nil {
		r.wrongf(n, "%s is no regular expression: %v", what, err)
	}
	return p
}

// oneOf reads a word out of a list.
func (r *reader) oneOf(n *yaml.Node, what string, words []string) string {
	if !slices.Contains(words, n.Value) || n.Kind != yaml.ScalarNode {
		r.wrongf(n, "%s is %q; it must be one of %s", what, n.Value, strings.Join(words, ", "))
		return ""
	}
	return n.Value
}
