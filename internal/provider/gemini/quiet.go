package gemini

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// quiet is a client whose answers end instead of failing. The vendor's client prints
// every failure of a stream to the standard logger, and an interruption, which ends a
// stream in the middle, is no news. What failed is asked of the context afterwards,
// or seen by an answer that gives no reason for its end.
func quiet(client *http.Client) *http.Client {
	hushed := *client
	inner := client.Transport
	if inner == nil {
		inner = http.DefaultTransport
	}
	hushed.Transport = quietTransport{inner}
	return &hushed
}

type quietTransport struct{ inner http.RoundTripper }

func (t quietTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.inner.RoundTrip(r)
	if err == nil {
		response.Body = &quietBody{ReadCloser: response.Body}
	}
	return response, err
}

// quietBody reads as ended when it has failed.
type quietBody struct {
	io.ReadCloser
	once sync.Once
}

func (b *quietBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, err
}

// Close closes the body; failing at that is no news either.
func (b *quietBody) Close() error {
	b.once.Do(func() { _ = b.ReadCloser.Close() })
	return nil
}
