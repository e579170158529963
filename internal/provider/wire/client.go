package wire

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
)

// connections are kept open per service: a new one costs two round trips in the
// middle of a conversation.
const connections = 256

// Client is the HTTP client of one service, or the given one.
func Client(given *http.Client) *http.Client {
	if given != nil {
		return given
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // nobody replaces it here
	transport.MaxIdleConnsPerHost = connections
	return &http.Client{Transport: transport}
}

// Base reads a service's address: HTTP, or a WebSocket's where sockets is true.
func Base(name, text, like string, sockets bool) (*url.URL, error) {
	schemes := []string{"http", "https"}
	if sockets {
		schemes = append(schemes, "ws", "wss")
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || !slices.Contains(schemes, base.Scheme) {
		return nil, errors.New(name + ": the base URL must be like " + like)
	}
	return base, nil
}
