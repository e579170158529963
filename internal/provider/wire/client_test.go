package wire_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/provider/providertest"
	"parley/internal/provider/wire"
)

func TestAWarmConnectionIsUsed(t *testing.T) {
	peers := make(chan string, 2)
	server := providertest.Serve(func(_ context.Context, w http.ResponseWriter, r *http.Request) {
		peers <- r.RemoteAddr
		_, _ = w.Write([]byte("{}"))
	})
	defer server.Close()
	client := wire.Client(nil)
	defer client.CloseIdleConnections()
	require.NoError(t, wire.Warm(t.Context(), client, server.URL))
	var into struct{}
	require.NoError(t, wire.Get(t.Context(), client, server.URL, http.Header{}, func([]byte) string { return "" }, &into))
	first := <-peers
	require.Equal(t, first, <-peers)
}
