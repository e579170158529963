package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"parley"
)

// bareTool is a tool as the bare handler reads and writes it.
type bareTool struct {
	ID          int64           `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Endpoint    string          `json:"endpoint"`
	Method      string          `json:"method"`
	Timeout     int             `json:"timeout"`
	Headers     []parley.Header `json:"headers"`
	Schema      []parley.Param  `json:"schema"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
}

// bareAssistant is an assistant's record. Its settings keep their Go names: the
// values and the work are the same, and a new setting needs no line here.
type bareAssistant struct {
	ID            int64  `json:"id"`
	UserID        int64  `json:"user_id"`
	UUID          string `json:"uuid"`
	Name          string `json:"name"`
	Type          string `json:"type"`
	Status        string `json:"status"`
	Mode          string `json:"mode"`
	PhoneNumberID *int64 `json:"phone_number_id"`
	VoiceID       int64  `json:"voice_id"`
	LanguageID    int64  `json:"language_id"`
	LLMModelID    int64  `json:"llm_model_id"`
	parley.Settings
	Tools     []bareAttachment `json:"tools"`
	CreatedAt time.Time        `json:"created_at"`
	UpdatedAt time.Time        `json:"updated_at"`
	DeletedAt *int64           `json:"deleted_at"`
}

type bareAttachment struct {
	Type string   `json:"type"`
	Data bareTool `json:"data"`
}

// bareDone is the envelope of a change.
type bareDone struct {
	Message string `json:"message"`
	Data    any    `json:"data"`
}

func (b *bareServer) createTool(r *http.Request, user int64) (any, error) {
	var tool bareTool
	if err := json.NewDecoder(r.Body).Decode(&tool); err != nil {
		return nil, err
	}
	headers, err := b.seal.seal(tool.Headers)
	if err != nil {
		return nil, err
	}
	schema, err := json.Marshal(tool.Schema)
	if err != nil {
		return nil, err
	}
	tool.CreatedAt = time.Now().UTC()
	tool.UpdatedAt = tool.CreatedAt
	err = b.transact(r.Context(), func(tx *sql.Tx) error {
		at := tool.CreatedAt.UnixMicro()
		return tx.StmtContext(r.Context(), b.insertTool).QueryRowContext(r.Context(), user, tool.Name, tool.Description, tool.Endpoint, tool.Method, tool.Timeout,
			headers, string(schema), at, at).Scan(&tool.ID)
	})
	return bareDone{"Tool created successfully", tool}, err
}

func (b *bareServer) getTool(r *http.Request, user int64) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, err
	}
	var tool bareTool
	return &tool, b.scanTool(b.selectTool.QueryRowContext(r.Context(), user, id), &tool)
}

// scanTool reads a tool's row; first are columns that stand before the tool's.
func (b *bareServer) scanTool(row interface{ Scan(...any) error }, tool *bareTool, first ...any) error {
	var headers, schema []byte
	var created, updated int64
	err := row.Scan(append(first, &tool.ID, &tool.Name, &tool.Description, &tool.Endpoint, &tool.Method, &tool.Timeout, &headers, &schema, &created, &updated)...)
	if err != nil {
		return err
	}
	tool.CreatedAt, tool.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	if err := b.seal.open(headers, &tool.Headers); err != nil {
		return err
	}
	return json.Unmarshal(schema, &tool.Schema)
}

func (b *bareServer) pageAssistants(r *http.Request, user int64) (any, error) {
	ctx := r.Context()
	page := struct {
		CurrentPage int              `json:"current_page"`
		Data        []*bareAssistant `json:"data"`
		PerPage     int              `json:"per_page"`
		Total       int64            `json:"total"`
	}{CurrentPage: 1, PerPage: barePage}
	if err := b.countAssistants.QueryRowContext(ctx, user).Scan(&page.Total); err != nil {
		return nil, err
	}
	rows, err := b.listAssistants.QueryContext(ctx, user, barePage, 0)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		a := &bareAssistant{}
		if err := a.scan(rows); err != nil {
			return nil, err
		}
		page.Data = append(page.Data, a)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return page, b.loadTools(ctx, b.pageTools, user, page.Data)
}

func (a *bareAssistant) scan(row interface{ Scan(...any) error }) error {
	var settings []byte
	var created, updated int64
	err := row.Scan(&a.ID, &a.UserID, &a.UUID, &a.Name, &a.Type, &a.Status, &a.Mode, &a.PhoneNumberID, &a.VoiceID, &a.LanguageID, &a.LLMModelID,
		&settings, &created, &updated, &a.DeletedAt)
	if err != nil {
		return err
	}
	a.CreatedAt, a.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	return json.Unmarshal(settings, &a.Settings)
}

// loadTools gives assistants their tools; as many as the statement has places for.
func (b *bareServer) loadTools(ctx context.Context, statement *sql.Stmt, user int64, assistants []*bareAssistant) error {
	args := []any{user}
	byID := make(map[int64]*bareAssistant, len(assistants))
	for _, a := range assistants {
		args = append(args, a.ID)
		byID[a.ID] = a
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var to int64
		attached := bareAttachment{Type: "http"}
		if err := b.scanTool(rows, &attached.Data, &to); err != nil {
			return err
		}
		byID[to].Tools = append(byID[to].Tools, attached)
	}
	return rows.Err()
}

func (b *bareServer) changeAssistant(r *http.Request, user int64) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, err
	}
	var change struct {
		Name           *string         `json:"assistant_name"`
		SystemPrompt   *string         `json:"system_prompt"`
		LLMTemperature *parley.Decimal `json:"llm_temperature"`
		MaxDuration    *int            `json:"max_call_duration"`
	}
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		return nil, err
	}
	a := &bareAssistant{}
	err = b.transact(r.Context(), func(tx *sql.Tx) error {
		if err := a.scan(tx.StmtContext(r.Context(), b.lockAssistant).QueryRowContext(r.Context(), user, id)); err != nil {
			return err
		}
		if err := b.loadTools(r.Context(), tx.StmtContext(r.Context(), b.assistantTools), user, []*bareAssistant{a}); err != nil {
			return err
		}
		set(&a.Name, change.Name)
		set(&a.SystemPrompt, change.SystemPrompt)
		set(&a.LLMTemperature, change.LLMTemperature)
		set(&a.MaxDuration, change.MaxDuration)
		return b.saveAssistant(r.Context(), tx, a)
	})
	return bareDone{"Assistant updated successfully", struct {
		ID     int64  `json:"id"`
		Name   string `json:"name"`
		Status string `json:"status"`
		Type   string `json:"type"`
		Mode   string `json:"mode"`
	}{a.ID, a.Name, a.Status, a.Type, a.Mode}}, err
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (b *bareServer) saveAssistant(ctx context.Context, tx *sql.Tx, a *bareAssistant) error {
	settings, err := json.Marshal(a.Settings)
	if err != nil {
		return err
	}
	result, err := tx.StmtContext(ctx, b.updateAssistant).ExecContext(ctx, a.Name, a.Type, a.Status, a.Mode, a.PhoneNumberID, a.VoiceID, a.LanguageID, a.LLMModelID,
		string(settings), time.Now().UnixMicro(), a.UserID, a.ID)
	if err != nil {
		return err
	}
	_, err = result.RowsAffected()
	return err
}

func (b *bareServer) transact(ctx context.Context, run func(*sql.Tx) error) error {
	tx, err := b.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit()
}
