package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync"

	"parley"
)

const assistantColumns = "id, user_id, uuid, name, type, status, mode, phone_number_id, voice_id, language_id, llm_model_id, settings, created_at, updated_at, deleted_at"

// CreateAssistant adds an assistant with its tools.
func (t *Tenant) CreateAssistant(ctx context.Context, a *parley.Assistant) error {
	settings, err := json.Marshal(a.Settings)
	if err != nil {
		return err
	}
	a.UserID, a.UUID, a.CreatedAt = t.user, newUUID(), now()
	a.UpdatedAt = a.CreatedAt
	return t.Tx(ctx, func(t *Tenant) error {
		a.ID, err = t.insert(ctx, `INSERT INTO assistants (user_id, uuid, name, type, status, mode, phone_number_id, voice_id, language_id, llm_model_id, settings, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			t.user, a.UUID, a.Name, a.Type, a.Status, a.Mode, a.PhoneNumberID, a.VoiceID, a.LanguageID, a.LLMModelID, string(settings), a.CreatedAt.UnixMicro(), a.UpdatedAt.UnixMicro())
		if err != nil {
			return numberTaken(err)
		}
		return t.attach(ctx, a)
	})
}

// SaveAssistant writes a changed assistant back; its tools too, if they changed.
func (t *Tenant) SaveAssistant(ctx context.Context, a *parley.Assistant, toolsChanged bool) error {
	settings, err := json.Marshal(a.Settings)
	if err != nil {
		return err
	}
	a.UpdatedAt = now()
	return t.Tx(ctx, func(t *Tenant) error {
		result, err := t.exec(ctx, `UPDATE assistants SET name = ?, type = ?, status = ?, mode = ?, phone_number_id = ?, voice_id = ?, language_id = ?, llm_model_id = ?, settings = ?, updated_at = ?
			WHERE user_id = ? AND id = ? AND deleted_at IS NULL`,
			a.Name, a.Type, a.Status, a.Mode, a.PhoneNumberID, a.VoiceID, a.LanguageID, a.LLMModelID, string(settings), a.UpdatedAt.UnixMicro(), t.user, a.ID)
		if err := affected(result, numberTaken(err), "Assistant"); err != nil {
			return err
		}
		if !toolsChanged {
			return nil
		}
		if _, err := t.exec(ctx, "DELETE FROM assistant_tools WHERE assistant_id = ?", a.ID); err != nil {
			return err
		}
		return t.attach(ctx, a)
	})
}

// numberTaken explains that another inbound assistant got the line first.
func numberTaken(err error) error {
	if !unique(err) {
		return err
	}
	var errs parley.FieldErrors
	errs.Add("phone_number_id", parley.NumberAssigned)
	return &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: errs}
}

func (t *Tenant) attach(ctx context.Context, a *parley.Assistant) error {
	for i, id := range a.ToolIDs {
		if _, err := t.exec(ctx, "INSERT INTO assistant_tools (assistant_id, tool_id, position) VALUES (?, ?, ?)", a.ID, id, i); err != nil {
			return err
		}
	}
	return nil
}

// Assistant is one assistant with its tools; inside a transaction it is locked until the end.
func (t *Tenant) Assistant(ctx context.Context, id parley.ID) (*parley.Assistant, error) {
	a, err := one(ctx, t.session, "Assistant", scanAssistant,
		"SELECT "+assistantColumns+" FROM assistants WHERE user_id = ? AND id = ? AND deleted_at IS NULL"+t.forUpdate(), t.user, id)
	if err != nil {
		return nil, err
	}
	return a, t.loadTools(ctx, []*parley.Assistant{a})
}

// AssistantFilter narrows a list of assistants; empty fields do not.
type AssistantFilter struct {
	Type   parley.Direction
	Status parley.AssistantStatus
}

func (f AssistantFilter) where() (clause string, args []any) {
	if f.Type != "" {
		clause, args = clause+" AND type = ?", append(args, string(f.Type))
	}
	if f.Status != "" {
		clause, args = clause+" AND status = ?", append(args, string(f.Status))
	}
	return clause, args
}

// Assistants is a part of the user's assistants, newest first, and how many there are in all.
func (t *Tenant) Assistants(ctx context.Context, f AssistantFilter, limit, offset int) ([]parley.Assistant, int, error) {
	clause, args := f.where()
	args = append([]any{t.user}, args...)
	total, err := t.number(ctx, "SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM assistant_counts WHERE user_id = ?"+clause, args...)
	if err != nil {
		return nil, 0, err
	}
	// The casts hide the numbers from SQLite's planner: for a bare LIMIT ? it would
	// compile the statement again each time.
	page, err := list(ctx, t.session, scanAssistant,
		"SELECT "+assistantColumns+" FROM assistants WHERE user_id = ? AND deleted_at IS NULL"+clause+" ORDER BY id DESC LIMIT CAST(? AS BIGINT) OFFSET CAST(? AS BIGINT)",
		append(args, limit, offset)...)
	if err != nil {
		return nil, 0, err
	}
	pointers := make([]*parley.Assistant, len(page))
	for i := range page {
		pointers[i] = &page[i]
	}
	return page, int(total), t.loadTools(ctx, pointers)
}

// loadTools gives assistants their tools, in the order they were attached.
func (t *Tenant) loadTools(ctx context.Context, assistants []*parley.Assistant) error {
	if len(assistants) == 0 {
		return nil
	}
	ids := make([]parley.ID, len(assistants))
	byID := make(map[parley.ID]*parley.Assistant, len(assistants))
	for i, a := range assistants {
		ids[i], byID[a.ID] = a.ID, a
		a.ToolIDs = []parley.ID{}
	}
	type attached struct {
		to   parley.ID
		tool parley.Tool
	}
	// The + keeps SQLite from starting at the index of the owner's tools: it would go
	// through all of them for the few that are attached.
	tools, err := list(ctx, t.session, func(row scanner, at *attached) error {
		return t.db.scanTool(prefixed{row, &at.to}, &at.tool)
	}, "SELECT x.assistant_id, "+toolColumns+" FROM assistant_tools x JOIN tools t ON t.id = x.tool_id WHERE +t.user_id = ? AND x.assistant_id IN ("+placeholders(len(ids))+") ORDER BY x.assistant_id, x.position",
		idArgs(t.user, ids)...)
	if err != nil {
		return err
	}
	for _, at := range tools {
		a := byID[at.to]
		a.ToolIDs = append(a.ToolIDs, at.tool.ID)
		a.Tools = append(a.Tools, at.tool)
	}
	return nil
}

// prefixed scans a first column before the ones another scan knows.
type prefixed struct {
	row   scanner
	first any
}

func (p prefixed) Scan(to ...any) error { return p.row.Scan(append([]any{p.first}, to...)...) }

// DeleteAssistant hides an assistant from every list and look-up, frees its line
// and detaches its tools. Its calls keep referring to the row.
func (t *Tenant) DeleteAssistant(ctx context.Context, id parley.ID) error {
	return t.Tx(ctx, func(t *Tenant) error {
		at := now().UnixMicro()
		result, err := t.exec(ctx, "UPDATE assistants SET deleted_at = ?, updated_at = ?, phone_number_id = NULL WHERE user_id = ? AND id = ? AND deleted_at IS NULL", at, at, t.user, id)
		if err := affected(result, err, "Assistant"); err != nil {
			return err
		}
		_, err = t.exec(ctx, "DELETE FROM assistant_tools WHERE assistant_id = ?", id)
		return err
	})
}

func scanAssistant(row scanner, a *parley.Assistant) error {
	var settings sql.RawBytes // read before the next row is
	err := row.Scan(&a.ID, &a.UserID, &a.UUID, &a.Name, &a.Type, &a.Status, &a.Mode, &a.PhoneNumberID, &a.VoiceID, &a.LanguageID, &a.LLMModelID,
		&settings, micros{&a.CreatedAt}, micros{&a.UpdatedAt}, nullMicros{&a.DeletedAt})
	if err != nil {
		return err
	}
	a.Settings = defaults() // for settings added since the row was written
	return json.Unmarshal(settings, &a.Settings)
}

// defaults are those of the plain settings. Lists and maps are left out: decoding
// would write into what all assistants share.
var defaults = sync.OnceValue(func() parley.Settings {
	a := &parley.Assistant{}
	parley.AssistantForm.SetDefaults(a)
	a.Variables, a.WidgetSettings, a.PostCallSchema, a.FillerConfig = nil, nil, nil, parley.FillerConfig{}
	return a.Settings
})

// newUUID is a random UUID (RFC 9562, 5.4).
func newUUID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand never fails on a supported system
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
