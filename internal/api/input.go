package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"unicode/utf8"

	"parley"
)

const (
	maxBody  = 1 << 20
	maxDepth = 64 // of nested objects and arrays; no client means more
)

// readInput reads a JSON object. It has answered when ok is false.
func readInput(w *answerWriter, r *http.Request) (in parley.Input, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			w.message(http.StatusRequestEntityTooLarge, "The request body is larger than 1 MiB.")
		} else {
			w.message(http.StatusBadRequest, "The request body could not be read.")
		}
		return nil, false
	}
	in, wrong := parseInput(body)
	if wrong != "" {
		w.message(http.StatusBadRequest, wrong)
		return nil, false
	}
	return in, true
}

// parseInput reads a JSON object, or says what is wrong with it.
func parseInput(body []byte) (in parley.Input, wrong string) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0, string(body) == "[]": // some clients write an empty object so
		return parley.Input{}, ""
	case !utf8.Valid(body):
		return nil, "The request body is not valid UTF-8."
	case depth(body) > maxDepth:
		return nil, "The request body is nested too deeply."
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, "The request body is not valid JSON."
	}
	if decoder.More() {
		return nil, "The request body holds more than one JSON value."
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, "The request body must be a JSON object."
	}
	return object, ""
}

// depth is how deeply the brackets outside strings nest.
func depth(body []byte) (deepest int) {
	level, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{', c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}', c == ']':
			level--
		}
	}
	return deepest
}
