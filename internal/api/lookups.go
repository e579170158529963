package api

import (
	"context"
	"net/http"

	"parley"
	"parley/internal/store"
)

// The catalogue as lists show it.
var (
	voiceForm = parley.Form[parley.Voice]{
		{Name: "id", At: func(v *parley.Voice) any { return &v.ID }, Effect: "Used as voice_id.", Example: 1},
		{Name: "name", At: func(v *parley.Voice) any { return &v.Name }, Example: "Sandbox Alto"},
		{Name: "mode", At: func(v *parley.Voice) any { return &v.Mode }, Rule: parley.Rule{In: []string{"pipeline", "multimodal"}}, Effect: "The engine_type it fits.", Example: "pipeline"},
	}
	modelForm = parley.Form[parley.Model]{
		{Name: "id", At: func(m *parley.Model) any { return &m.ID }, Example: 1},
		{Name: "name", At: func(m *parley.Model) any { return &m.Name }, Effect: "Used as llm_model.", Example: "sandbox"},
	}
	languageForm = parley.Form[parley.Language]{
		{Name: "id", At: func(l *parley.Language) any { return &l.ID }, Example: 1},
		{Name: "name", At: func(l *parley.Language) any { return &l.Name }, Effect: "Used as language.", Example: "English"},
		{Name: "iso_2", At: func(l *parley.Language) any { return &l.ISO2 }, Effect: "Two-letter code.", Example: "en"},
	}
)

var voiceQuery = parley.Form[store.VoiceFilter]{
	{Name: "mode", At: func(f *store.VoiceFilter) any { return &f.Mode }, Rule: parley.Rule{In: []string{"pipeline", "multimodal"}}, Effect: "Only those of this mode."},
	{Name: "language_id", At: func(f *store.VoiceFilter) any { return &f.LanguageID }, Effect: "Only those that speak this language."},
}

// numberList is the query of the lines an assistant can be given.
type numberList struct{ Type parley.Direction }

var numberQuery = parley.Form[numberList]{
	{Name: "type", At: func(q *numberList) any { return &q.Type }, Rule: parley.Rule{In: []string{"inbound", "outbound"}},
		Effect: "inbound: only those that a new inbound assistant can be given."},
}

func lookupRoutes() []Route {
	const group = "Lookups"
	badQuery := func(field, message string) []Failure {
		return []Failure{{http.StatusUnprocessableEntity, "A query value breaks its rule.", parley.ValidationFailed, example{field: {message}}}}
	}
	return []Route{
		{Method: "GET", Path: "/user/assistants/phone-numbers", Group: group, Summary: "Lines for assistants", handle: listNumbersFor,
			Query: numberQuery.Describe(), Answer: bare(arrayOf("PhoneNumber")), Errors: badQuery("type", parley.Selected("type", []string{"inbound", "outbound"}))},
		{Method: "GET", Path: "/user/assistants/voices", Group: group, Summary: "Voices", handle: listVoices,
			Detail: "Everybody's and your own.", Query: voiceQuery.Describe(), Answer: bare(arrayOf("Voice")), Errors: badQuery("mode", parley.Selected("mode", []string{"pipeline", "multimodal"}))},
		{Method: "GET", Path: "/user/assistants/models", Group: group, Summary: "Language models", handle: listModels, Answer: bare(arrayOf("Model"))},
		{Method: "GET", Path: "/user/assistants/languages", Group: group, Summary: "Languages", handle: listLanguages, Answer: bare(arrayOf("Language"))},
	}
}

func listNumbersFor(ctx context.Context, rq *request) (*reply, error) {
	q, err := readQuery(numberQuery, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	all, err := rq.tenant.PhoneNumbers(ctx)
	shown := all[:0]
	for _, number := range all {
		if q.Type != parley.Inbound || number.Available {
			shown = append(shown, number)
		}
	}
	return ok(records(parley.PhoneNumberForm, shown, err))
}

func listVoices(ctx context.Context, rq *request) (*reply, error) {
	q, err := readQuery(voiceQuery, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	voices, err := rq.tenant.Voices(ctx, q)
	return ok(records(voiceForm, voices, err))
}

func listModels(ctx context.Context, rq *request) (*reply, error) {
	models, err := rq.tenant.Models(ctx)
	return ok(records(modelForm, models, err))
}

func listLanguages(ctx context.Context, rq *request) (*reply, error) {
	languages, err := rq.tenant.Languages(ctx)
	return ok(records(languageForm, languages, err))
}
