package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/internal/store"
)

func assistantRoutes() []Route {
	const group = "Assistants"
	body := parley.AssistantForm.Describe()
	missing := Failure{http.StatusNotFound, "The assistant is unknown or another user's.", "Assistant not found", nil}
	refused := Failure{http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed, example{
		"assistant_name": {"The assistant name field is required."},
		"webhook_url":    {"The webhook url field is required when is webhook active is true."},
	}}
	update := Route{Method: "PUT", Path: "/user/assistant/{id}", Group: group, Summary: "Update an assistant", handle: updateAssistant, failure: "Assistant update failed",
		Detail: "Only supplied fields change. `tool_ids`, `tools`, `variables`, `post_call_schema` and `filler_config` replace what there was.",
		Body:   body, Updates: true, Answer: changed(http.StatusOK, "Assistant updated successfully", ref("AssistantSummary")),
		Errors: []Failure{missing, refused, {http.StatusInternalServerError, "Storage failed; nothing was changed.", "Assistant update failed", nil}}}
	patch := update
	patch.Method, patch.Summary = "PATCH", "Update an assistant (the same as PUT)"
	return []Route{
		{Method: "POST", Path: "/user/assistant", Group: group, Summary: "Create an assistant", handle: createAssistant, failure: "Assistant creation failed",
			Detail: "A field's request name and its name in the record are both accepted; the request name wins.",
			Body:   body, Answer: changed(http.StatusCreated, "Assistant created successfully", ref("AssistantSummary")),
			Errors: []Failure{refused, {http.StatusInternalServerError, "Storage failed; nothing was created.", "Assistant creation failed", nil}}},
		{Method: "GET", Path: "/user/assistant/{id}", Group: group, Summary: "Get an assistant", handle: getAssistant,
			Answer: bare(ref("Assistant")), Errors: []Failure{missing}},
		update, patch,
		{Method: "DELETE", Path: "/user/assistant/{id}", Group: group, Summary: "Delete an assistant", handle: deleteAssistant,
			Detail: "It disappears from every list, its line is freed and its tools are detached; its calls stay.",
			Answer: changed(http.StatusOK, "Assistant deleted successfully", nil), Errors: []Failure{missing}},
		{Method: "GET", Path: "/user/assistants/get", Group: group, Summary: "List assistants, page by page", handle: pageAssistants,
			Query: assistantQuery.Describe(), Answer: bare(pageOf("Assistant")),
			Errors: []Failure{{http.StatusUnprocessableEntity, "A query value breaks its rule.", parley.ValidationFailed, example{"per_page": {"The per page must be between 1 and 100."}}}}},
		{Method: "GET", Path: "/user/assistants", Group: group, Summary: "List assistants", handle: listAssistants(store.AssistantFilter{}),
			Detail: "The newest 1,000 as a bare array; `X-Total-Count` says how many there are.", Answer: bare(arrayOf("Assistant"))},
		{Method: "GET", Path: "/user/assistants/outbound", Group: group, Summary: "List outbound assistants", handle: listAssistants(store.AssistantFilter{Type: parley.Outbound}),
			Detail: "The newest 1,000 as a bare array; `X-Total-Count` says how many there are.", Answer: bare(arrayOf("Assistant"))},
	}
}

func createAssistant(ctx context.Context, rq *request) (*reply, error) {
	a, sent, errs := parley.CreateAssistant(rq.input)
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		if err := rq.lookUp(ctx, t, a, sent, &errs); err != nil {
			return err
		}
		return t.CreateAssistant(ctx, a)
	})
	return done(http.StatusCreated, "Assistant created successfully", summary(a)), err
}

func updateAssistant(ctx context.Context, rq *request) (*reply, error) {
	var a *parley.Assistant
	var webhooks bool
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) (err error) {
		if a, err = t.Assistant(ctx, rq.id()); err != nil {
			return err
		}
		sent, errs := a.Update(rq.input)
		webhooks = sent["is_webhook_active"] || sent["webhook_url"] || sent["inbound_webhook_url"]
		if err := rq.lookUp(ctx, t, a, sent, &errs); err != nil {
			return err
		}
		return t.SaveAssistant(ctx, a, sent["tool_ids"] || sent["tools"])
	})
	if err != nil {
		return nil, err
	}
	if webhooks {
		err = rq.awaitQuiet(ctx, a)
	}
	return done(http.StatusOK, "Assistant updated successfully", summary(a)), err
}

func summary(a *parley.Assistant) []byte {
	return encode(struct {
		ID     parley.ID              `json:"id"`
		Name   string                 `json:"name"`
		Status parley.AssistantStatus `json:"status"`
		Type   parley.Direction       `json:"type"`
		Mode   parley.Mode            `json:"mode"`
	}{a.ID, a.Name, a.Status, a.Type, a.Mode})
}

func getAssistant(ctx context.Context, rq *request) (*reply, error) {
	a, err := rq.tenant.Assistant(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	return ok(record(parley.AssistantForm, a))
}

func deleteAssistant(ctx context.Context, rq *request) (*reply, error) {
	if err := rq.tenant.DeleteAssistant(ctx, rq.id()); err != nil {
		return nil, err
	}
	now := time.Now()
	return done(http.StatusOK, "Assistant deleted successfully", nil), rq.awaitQuiet(ctx, &parley.Assistant{ID: rq.id(), DeletedAt: &now})
}

// assistantList is the query of a list of assistants.
type assistantList struct {
	paging
	store.AssistantFilter
}

var assistantQuery = append(pagingFields(func(q *assistantList) *paging { return &q.paging }, 10), parley.Form[assistantList]{
	{Name: "type", At: func(q *assistantList) any { return &q.Type }, Rule: parley.Rule{In: []string{"inbound", "outbound"}}, Effect: "Only those of this direction."},
	{Name: "status", At: func(q *assistantList) any { return &q.Status }, Rule: parley.Rule{In: []string{"active", "inactive"}}, Effect: "Only those of this status."},
}...)

func pageAssistants(ctx context.Context, rq *request) (*reply, error) {
	q, err := readQuery(assistantQuery, rq.URL.Query())
	if err != nil {
		return nil, err
	}
	all, total, err := rq.tenant.Assistants(ctx, q.AssistantFilter, q.PerPage, q.offset())
	items, err := records(parley.AssistantForm, all, err)
	if err != nil {
		return nil, err
	}
	return ok(rq.server.paginate(rq.Request, q.paging, items, len(all), total), nil)
}

func listAssistants(f store.AssistantFilter) func(context.Context, *request) (*reply, error) {
	return func(ctx context.Context, rq *request) (*reply, error) {
		all, total, err := rq.tenant.Assistants(ctx, f, maxBare, 0)
		return counted(parley.AssistantForm, all, total, err)
	}
}

// lookUp finds what an assistant refers to and refuses what is not there for this
// user. Only what a request touched is looked up.
func (rq *request) lookUp(ctx context.Context, t *store.Tenant, a *parley.Assistant, sent parley.Sent, errs *parley.FieldErrors) error {
	l := references{t: t, a: a, sent: sent, errs: errs, canEquip: rq.server.config.CanEquip}
	for _, find := range []func(context.Context) error{l.language, l.model, l.voice, l.equipment, l.line, l.tools} {
		if err := find(ctx); err != nil {
			return err
		}
	}
	if len(*errs) > 0 {
		return &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: *errs}
	}
	return nil
}

// references is the look-up of one assistant's references.
type references struct {
	t    *store.Tenant
	a    *parley.Assistant
	sent parley.Sent
	errs *parley.FieldErrors

	canEquip func(*parley.Assistant, *parley.Voice, *parley.Model) error
}

// equipment refuses a voice and a model that no configured provider can hold a call with.
func (l references) equipment(ctx context.Context) error {
	changed := l.sent["voice_id"] || l.sent["llm_model"] || l.sent["llm_model_id"] || l.sent["mode"] || l.sent["language"] || l.sent["language_id"]
	if l.canEquip == nil || !changed || len(*l.errs) > 0 {
		return nil
	}
	voice, model, err := l.t.Outfit(ctx, l.a)
	if err != nil {
		return err
	}
	if wrong := l.canEquip(l.a, voice, model); wrong != nil {
		l.errs.Add("llm_model", "The assistant could not hold a call: "+wrong.Error()+".")
	}
	return nil
}

// touched says whether a field was sent and is well formed.
func (l references) touched(field string) bool { return l.sent[field] && !l.errs.Has(field) }

// refuse turns a missing reference into a field error that says what there is.
func (l references) refuse(err error, field string, available func() ([]string, error)) error {
	if parley.ErrorCode(err) != parley.NotFound {
		return err
	}
	names, err := available()
	l.errs.Add(field, parley.Selected(field, names))
	return err
}

func none() ([]string, error) { return nil, nil }

func (l references) language(ctx context.Context) error {
	var found *parley.Language
	var err error
	field := "language"
	switch {
	case l.touched("language"):
		found, err = l.t.LanguageNamed(ctx, l.a.Language)
	case l.touched("language_id") && !l.sent["language"]:
		field = "language_id"
		found, err = l.t.Language(ctx, l.a.LanguageID)
	default:
		return nil
	}
	if err != nil {
		return l.refuse(err, field, func() (names []string, err error) {
			all, err := l.t.Languages(ctx)
			for _, language := range all {
				names = append(names, language.Name)
			}
			return names, err
		})
	}
	l.a.LanguageID, l.a.Language = found.ID, found.Name
	return nil
}

func (l references) model(ctx context.Context) error {
	var found *parley.Model
	var err error
	field := "llm_model"
	switch {
	case l.touched("llm_model"):
		found, err = l.t.ModelNamed(ctx, l.a.LLMModel)
	case l.touched("llm_model_id") && !l.sent["llm_model"]:
		field = "llm_model_id"
		found, err = l.t.Model(ctx, l.a.LLMModelID)
	default:
		l.a.SettleModel()
		return nil
	}
	if err != nil {
		return l.refuse(err, field, func() (names []string, err error) {
			all, err := l.t.Models(ctx)
			for _, model := range all {
				names = append(names, model.Name)
			}
			return names, err
		})
	}
	l.a.LLMModelID, l.a.LLMModel = found.ID, found.Name
	l.a.SettleModel()
	return nil
}

// voice must be visible and fit the mode, whichever of the two was sent.
func (l references) voice(ctx context.Context) error {
	if !l.touched("voice_id") && (!l.touched("mode") || l.a.VoiceID == 0) || l.errs.Has("engine_type") || l.errs.Has("mode") {
		return nil
	}
	found, err := l.t.Voice(ctx, l.a.VoiceID)
	if err != nil {
		return l.refuse(err, "voice_id", none)
	}
	if found.Mode != l.a.Mode {
		l.errs.Add("voice_id", "The selected voice id does not fit the engine type "+string(l.a.Mode)+". GET /user/assistants/voices?mode="+string(l.a.Mode)+" lists those that do.")
	}
	return nil
}

// line must be the user's own and, for an inbound assistant, one that can be
// called. That it rings nowhere else is for the database to say: requests may race.
func (l references) line(ctx context.Context) error {
	if l.a.PhoneNumberID == nil || !l.touched("phone_number_id") && !l.touched("type") {
		return nil
	}
	found, err := l.t.PhoneNumber(ctx, *l.a.PhoneNumberID)
	if err != nil {
		return l.refuse(err, "phone_number_id", none)
	}
	if l.a.Type == parley.Inbound && found.Type == parley.CallerIDNumber {
		l.errs.Add("phone_number_id", "The selected phone number id is a caller ID, which cannot be called.")
	}
	return nil
}

func (l references) tools(ctx context.Context) error {
	if len(l.a.ToolIDs) == 0 || !l.touched("tool_ids") && !l.touched("tools") {
		return nil
	}
	owned, err := l.t.OwnTools(ctx, l.a.ToolIDs)
	if err != nil {
		return err
	}
	names := map[parley.ID]string{}
	for _, tool := range owned {
		names[tool.ID] = tool.Name
	}
	distinct := []parley.ID{}
	called := map[string]parley.ID{}
	for i, id := range l.a.ToolIDs {
		if slices.Contains(distinct, id) {
			continue
		}
		distinct = append(distinct, id)
		field := "tool_ids." + strconv.Itoa(i)
		name, own := names[id]
		switch other, taken := called[name]; {
		case !own:
			l.errs.Add(field, parley.Selected(field, nil))
		case taken: // the model calls a tool by its name
			l.errs.Add(field, fmt.Sprintf("The %s has the same name as tool %d (%s). Rename one of them first.", parley.Spaced(field), other, name))
		default:
			called[name] = id
		}
	}
	l.a.ToolIDs = distinct
	return nil
}
