package converse

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
)

// TestPostCallEvaluation: the schema's names, typed as declared, null for what was
// not said, from the first model that answers with an object.
func TestPostCallEvaluation(t *testing.T) {
	t.Parallel()
	a := baseAssistant()
	a.PostCallEvaluation = true
	a.PostCallSchema = []parley.Param{{Name: "status", Type: "bool", Description: "objective reached"}, {Name: "guests", Type: "number", Description: "how many"}, {Name: "date", Type: "string", Description: "when"}, {Name: "odd", Type: "number", Description: "x"}}
	r := &Result{Turns: []Turn{{Text: "A table for four?", Sender: Bot}, {Text: "yes on Friday", Sender: Human}}}
	broken := &scriptModel{answer: always("I would rather chat.", 0)}
	good := &scriptModel{answer: always("```json\n{\"status\": \"true\", \"guests\": \"4\", \"date\": null, \"odd\": [], \"more\": 1}\n```", 0)}
	models := []Provider[Model]{{Name: "a", Key: "a-1", Use: broken}, {Name: "b", Key: "b-1", Use: good}}
	e, err := Evaluate(t.Context(), &a, r, models)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"status": true, "guests": 4.0, "date": nil, "odd": nil}, e.Values)
	require.Len(t, broken.prompts(), 2, "once more, then the next")
	p := good.prompts()[0]
	require.Equal(t, "b-1", p.Model)
	require.Equal(t, "boolean", p.Extract[0].Type)
	require.Equal(t, []Role{RoleAssistant, RoleCustomer}, []Role{p.Messages[0].Role, p.Messages[1].Role})
	require.Len(t, e.Usage, 2)

	_, err = Evaluate(t.Context(), &a, r, models[:1])
	require.Error(t, err)
	a.PostCallEvaluation = false
	e, err = Evaluate(t.Context(), &a, r, models)
	require.NoError(t, err)
	require.Empty(t, e.Values)
	require.Len(t, broken.prompts(), 4, "no model is asked")
}
