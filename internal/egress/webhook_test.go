package egress

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"parley"
)

// verify is a receiver that knows one secret, as the independent library does it.
func verify(t testing.TB, secret string, header http.Header, body []byte) error {
	t.Helper()
	receiver, err := standard.NewWebhook(secret)
	require.NoError(t, err)
	return receiver.Verify(body, header)
}

// TestPromiseW1ReceiversCanVerify: what is delivered verifies with either live secret;
// with any byte of the body, id, timestamp or signature changed it does not.
func TestPromiseW1ReceiversCanVerify(t *testing.T) {
	t.Parallel()
	fresh, old, gone := NewSecret(), NewSecret(), NewSecret()
	body := []byte(`{"event":"call.completed","id":17,"transcript":"Größe ✓"}`)
	url, next := inbox(t)
	a := home(t).Deliver(t.Context(), Delivery{ID: "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", URL: url, Body: body, Secrets: []string{fresh, old}})
	require.True(t, a.Delivered())
	require.Equal(t, 200, a.Status)
	require.Equal(t, `{"ok": true}`, a.Answer)
	got := next()
	require.Equal(t, "POST", got.method)
	require.Equal(t, string(body), got.body)
	require.Equal(t, "application/json", got.header.Get("Content-Type"))
	require.Equal(t, "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", got.header.Get("Webhook-Id"))
	require.NoError(t, verify(t, fresh, got.header, body))
	require.NoError(t, verify(t, old, got.header, body))
	require.Error(t, verify(t, gone, got.header, body))

	flips := 0
	for i := range body {
		for _, bit := range []byte{1, 128} {
			changed := append([]byte(nil), body...)
			changed[i] ^= bit
			require.Error(t, verify(t, fresh, got.header, changed), "byte %d of the body", i)
			flips++
		}
	}
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		value := got.header.Get(name)
		if name == "Webhook-Signature" {
			value, _, _ = strings.Cut(value, " ") // the other signature would still be good
		}
		for i := range value {
			header := got.header.Clone()
			changed := []byte(value)
			changed[i] ^= 1
			header.Set(name, string(changed))
			require.Error(t, verify(t, fresh, header, body), "byte %d of %s", i, name)
			flips++
		}
	}
	for _, body := range [][]byte{append(body, ' '), body[1:], nil} {
		require.Error(t, verify(t, fresh, got.header, body))
	}
	t.Logf("%d flips", flips)
}

func TestSigningNeedsASecret(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {}, {""}, {"whsec_"}, {"whsec_%%%"}, {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, {NewSecret(), "broken"}} {
		_, err := Sign("msg_1", time.Now(), nil, secrets)
		require.Error(t, err, secrets)
		a := home(t).Deliver(t.Context(), Delivery{ID: "msg_1", URL: "http://127.0.0.1", Secrets: secrets})
		require.Equal(t, parley.Unsendable, a.Failure.Kind)
	}
	// The example of the specification's own libraries.
	header, err := Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", header.Get("webhook-signature"))
	one, other := NewSecret(), NewSecret()
	require.NotEqual(t, one, other)
}

func TestAttemptsSayWhatTheReceiverSaid(t *testing.T) {
	t.Parallel()
	c := home(t)
	for value, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "0": 0, "": 0, "-5": 0, "soon": 0, "1e9": 0, "99999999999999999999": 0, "31536000": 24 * time.Hour,
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat):  time.Hour,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "caf\xe9 \x00 later")
		})
		a := c.Deliver(t.Context(), Delivery{ID: "msg_1", URL: url, Body: []byte("{}"), Secrets: []string{NewSecret()}})
		require.InDelta(t, want.Seconds(), a.RetryAfter.Seconds(), 2, value)
		require.Equal(t, &parley.Failure{Kind: parley.BadStatus, Message: "answered with status 503"}, a.Failure)
		require.Equal(t, 503, a.Status)
		require.Equal(t, "caf? ? later", a.Answer)
		require.WithinDuration(t, time.Now(), a.At, 10*time.Second)
	}
}

// The inbound webhook: an object within two seconds, or nothing.
func TestAsking(t *testing.T) {
	t.Parallel()
	c := home(t)
	for name, r := range map[string]struct {
		status int
		answer string
		want   map[string]any
	}{
		"flat":                {200, `{"name": "Eva", "age": 41, "vip": true}`, map[string]any{"name": "Eva", "age": "41", "vip": true}},
		"nested":              {200, `{"variables": {"name": "Eva"}, "other": 1}`, map[string]any{"name": "Eva"}},
		"no variables":        {200, `{}`, map[string]any{}},
		"an empty list":       {200, `{"variables": []}`, map[string]any{}},
		"created":             {201, `{"a": 1}`, map[string]any{"a": "1"}},
		"a list":              {200, `[{"name": "Eva"}]`, nil},
		"a text":              {200, `"name"`, nil},
		"null":                {200, `null`, nil},
		"null inside":         {200, `{"variables": null}`, nil},
		"text inside":         {200, `{"variables": "Eva"}`, nil},
		"nothing":             {200, ``, nil},
		"no content":          {204, ``, nil},
		"broken":              {200, `{"name": "Eva"`, nil},
		"two":                 {200, `{"name": "Eva"} {}`, nil},
		"HTML":                {200, `<html>`, nil},
		"refused":             {500, `{"name": "Eva"}`, nil},
		"redirected":          {302, `{"name": "Eva"}`, nil},
		"NUL":                 {200, `{"name": "E\u0000va"}`, nil},
		"a number beyond all": {200, `{"n": 1e999}`, nil},
		"too long to judge":   {200, `{"name": "Eva"}` + strings.Repeat(" ", 70<<10) + "x", nil},
		"too long":            {200, `{"name": "` + strings.Repeat("x", 70<<10) + `"}`, nil},
	} {
		url := serve(t, func(w http.ResponseWriter, q *http.Request) {
			body, _ := io.ReadAll(q.Body)
			if string(body) != `{"event":"call.incoming"}` || q.Header.Get("webhook-signature") == "" {
				t.Errorf("%s was sent %s", name, body)
			}
			w.WriteHeader(r.status)
			fmt.Fprint(w, r.answer)
		})
		variables, attempt := c.Ask(t.Context(), Delivery{ID: "msg_1", URL: url, Body: []byte(`{"event":"call.incoming"}`), Secrets: []string{NewSecret()}})
		require.Equal(t, r.status, attempt.Status, name)
		require.LessOrEqual(t, len(attempt.Answer), 20_000)
		if r.want == nil {
			require.Nil(t, variables, name)
			continue
		}
		require.NotNil(t, variables, name)
		got := map[string]any{}
		for key, v := range variables {
			if number, ok := v.(fmt.Stringer); ok {
				v = number.String()
			}
			got[key] = v
		}
		require.Equal(t, r.want, got, name)
	}
}

// A late answer is none, and is not waited for.
func TestAskingIsOverAfterTwoSeconds(t *testing.T) { // alone: it measures time
	c := home(t)
	for name, handler := range map[string]http.HandlerFunc{
		"hangs": hangs,
		"breaks off in the middle": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"name": "Eva"}`)
			w.(http.Flusher).Flush()
			hangs(w, r)
		},
	} {
		url := serve(t, handler)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			variables, _ := c.Ask(t.Context(), Delivery{ID: "msg_1", URL: url, Body: []byte("{}"), Secrets: []string{NewSecret()}})
			require.Nil(t, variables)
			require.GreaterOrEqual(t, time.Since(began), 1900*time.Millisecond)
			require.Less(t, time.Since(began), time.Second+prompt)
		})
	}
}
