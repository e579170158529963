package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parley/internal/provider/wire"
)

func TestForeignTextIsMadeSafeToKeep(t *testing.T) {
	t.Parallel()
	require.Equal(t, "wrong key *** or ***", wire.Clean("wrong\n key s3cret  or\ts3cret\xff", "s3cret"))
	require.Equal(t, "as it is", wire.Clean("as it is", ""), "a server without a key has none to hide")
	require.Equal(t, strings.Repeat("é", 200)+"…", wire.Clean(strings.Repeat("é", 201), "k"))
}
