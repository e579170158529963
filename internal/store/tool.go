package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"parley"
)

const (
	toolColumns = "t.id, t.user_id, t.name, t.description, t.endpoint, t.method, t.timeout, t.headers, t.schema, t.created_at, t.updated_at"

	// headersColumn is what header values are sealed for.
	headersColumn = "tools.headers"
)

// CreateTool adds a tool, unless the plan's limit is reached; 0 is no limit.
func (t *Tenant) CreateTool(ctx context.Context, tool *parley.Tool, limit int) error {
	headers, schema, err := t.db.sealTool(tool)
	if err != nil {
		return err
	}
	return t.Tx(ctx, func(t *Tenant) error {
		if err := t.checkToolLimit(ctx, limit); err != nil {
			return err
		}
		tool.UserID, tool.CreatedAt = t.user, now()
		tool.UpdatedAt = tool.CreatedAt
		var err error
		tool.ID, err = t.insert(ctx, `INSERT INTO tools (user_id, name, description, endpoint, method, timeout, headers, schema, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			t.user, tool.Name, tool.Description, tool.Endpoint, tool.Method, tool.Timeout, headers, schema, tool.CreatedAt.UnixMicro(), tool.UpdatedAt.UnixMicro())
		return err
	})
}

// checkToolLimit locks the user first: of many requests for the last place one wins.
func (t *Tenant) checkToolLimit(ctx context.Context, limit int) error {
	if limit == 0 {
		return nil
	}
	if _, err := t.number(ctx, "SELECT id FROM users WHERE id = ?"+t.forUpdate(), t.user); err != nil {
		return err
	}
	count, err := t.number(ctx, "SELECT COUNT(*) FROM tools WHERE user_id = ?", t.user)
	if err != nil {
		return err
	}
	if count >= int64(limit) {
		return parley.ErrToolLimit(limit)
	}
	return nil
}

// Tool is one tool; inside a transaction it is locked until the end.
func (t *Tenant) Tool(ctx context.Context, id parley.ID) (*parley.Tool, error) {
	return one(ctx, t.session, "Tool", t.db.scanTool, "SELECT "+toolColumns+" FROM tools t WHERE t.user_id = ? AND t.id = ?"+t.forUpdate(), t.user, id)
}

// Tools are all of the user's tools, newest first.
func (t *Tenant) Tools(ctx context.Context) ([]parley.Tool, error) {
	return list(ctx, t.session, t.db.scanTool, "SELECT "+toolColumns+" FROM tools t WHERE t.user_id = ? ORDER BY t.id DESC", t.user)
}

// ToolNameTaken says whether an assistant has the tool attached beside another of its
// name. Inside a transaction that has locked the tool it stays so until the end.
func (t *Tenant) ToolNameTaken(ctx context.Context, tool *parley.Tool) (bool, error) {
	others, err := t.number(ctx, `SELECT COUNT(*) FROM assistant_tools x JOIN assistant_tools y ON y.assistant_id = x.assistant_id AND y.tool_id <> x.tool_id
		JOIN tools t ON t.id = y.tool_id WHERE x.tool_id = ? AND t.user_id = ? AND t.name = ?`, tool.ID, t.user, tool.Name)
	return others > 0, err
}

// SaveTool writes a changed tool back.
func (t *Tenant) SaveTool(ctx context.Context, tool *parley.Tool) error {
	headers, schema, err := t.db.sealTool(tool)
	if err != nil {
		return err
	}
	tool.UpdatedAt = now()
	result, err := t.exec(ctx, `UPDATE tools SET name = ?, description = ?, endpoint = ?, method = ?, timeout = ?, headers = ?, schema = ?, updated_at = ?
		WHERE user_id = ? AND id = ?`,
		tool.Name, tool.Description, tool.Endpoint, tool.Method, tool.Timeout, headers, schema, tool.UpdatedAt.UnixMicro(), t.user, tool.ID)
	return affected(result, err, "Tool")
}

// DeleteTool removes a tool and detaches it from every assistant.
func (t *Tenant) DeleteTool(ctx context.Context, id parley.ID) error {
	return t.Tx(ctx, func(t *Tenant) error {
		if _, err := t.Tool(ctx, id); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "DELETE FROM assistant_tools WHERE tool_id = ?", id); err != nil {
			return err
		}
		result, err := t.exec(ctx, "DELETE FROM tools WHERE user_id = ? AND id = ?", t.user, id)
		return affected(result, err, "Tool")
	})
}

// OwnTools are those of the ids that are tools of the user's. Inside a transaction
// none of them is deleted before its end.
func (t *Tenant) OwnTools(ctx context.Context, ids []parley.ID) ([]parley.Tool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return list(ctx, t.session, t.db.scanTool,
		"SELECT "+toolColumns+" FROM tools t WHERE t.user_id = ? AND t.id IN ("+placeholders(len(ids))+") ORDER BY t.id"+t.forShare(), idArgs(t.user, ids)...)
}

func idArgs(first parley.ID, ids []parley.ID) []any {
	args := make([]any, 0, len(ids)+1)
	args = append(args, first)
	for _, id := range ids {
		args = append(args, id)
	}
	return args
}

// sealTool makes the two documents of a tool's row.
func (db *DB) sealTool(tool *parley.Tool) (headers []byte, schema string, err error) {
	plain, err := json.Marshal(tool.Headers)
	if err != nil {
		return nil, "", err
	}
	if headers, err = db.keys.seal(plain, headersColumn); err != nil {
		return nil, "", err
	}
	document, err := json.Marshal(tool.Schema)
	return headers, string(document), err
}

func (db *DB) scanTool(row scanner, tool *parley.Tool) error {
	var headers, schema sql.RawBytes // read before the next row is
	err := row.Scan(&tool.ID, &tool.UserID, &tool.Name, &tool.Description, &tool.Endpoint, &tool.Method, &tool.Timeout,
		&headers, &schema, micros{&tool.CreatedAt}, micros{&tool.UpdatedAt})
	if err != nil {
		return err
	}
	return db.openTool(tool, headers, schema)
}

func (db *DB) openTool(tool *parley.Tool, headers, schema []byte) error {
	plain, _, err := db.keys.open(headers, headersColumn)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, &tool.Headers); err != nil {
		return err
	}
	return json.Unmarshal(schema, &tool.Schema)
}
