package switchboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/sip"
)

// Every outcome of a call that was not answered has its status and reason.
func TestEveryOutcomeHasItsVerdict(t *testing.T) {
	t.Parallel()
	source, err := parser.ParseFile(token.NewFileSet(), "../sip/verdict.go", nil, 0)
	require.NoError(t, err)
	outcomes := 0
	ast.Inspect(source, func(n ast.Node) bool {
		constant, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, named := constant.Type.(*ast.Ident); !named || kind.Name != "Outcome" {
			return true
		}
		value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		verdict, known := verdicts[sip.Outcome(value)]
		require.True(t, known, "%s has no verdict", value)
		require.True(t, verdict.status.Final(), value)
		require.False(t, verdict.status.Talked(), value)
		require.Contains(t, parley.EndReasons(), verdict.reason, value)
		outcomes++
		return true
	})
	require.Len(t, verdicts, outcomes)
}
