package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
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

// HTTP is a service's address for requests, whether its streams are WebSockets or not.
func HTTP(base *url.URL) *url.URL {
	address := *base
	switch address.Scheme {
	case "ws":
		address.Scheme = "http"
	case "wss":
		address.Scheme = "https"
	}
	return &address
}

// mostAnswer bounds the answer to a request that is not for speech.
const mostAnswer = 16 << 20

// Get asks a service for a JSON document; message finds the vendor's words in a
// refusal.
func Get(ctx context.Context, client *http.Client, address string, header http.Header, message func(body []byte) string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the address cannot be used")
	}
	r.Header = header
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return ReadRefusal(response, message)
	}
	return json.NewDecoder(io.LimitReader(response.Body, mostAnswer)).Decode(into)
}

// Warm opens a connection to a service, to be used by the first request of a call.
// What the service answers does not matter.
func Warm(ctx context.Context, client *http.Client, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, mostAnswer))
	return errors.Join(err, response.Body.Close())
}
