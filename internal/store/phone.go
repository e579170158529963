package store

import (
	"context"
	"encoding/json"

	"parley"
)

// A line is available while it can be called and rings at no inbound assistant.
const numberColumns = `n.id, n.user_id, n.phone_number, n.country_code, n.type_label, n.sip_trunk_id, n.created_at, n.updated_at,
	n.type_label <> 'Caller ID' AND NOT EXISTS (SELECT 1 FROM assistants a WHERE a.phone_number_id = n.id AND a.type = 'inbound' AND a.deleted_at IS NULL)`

// PhoneNumbers are the user's lines, oldest first.
func (t *Tenant) PhoneNumbers(ctx context.Context) ([]parley.PhoneNumber, error) {
	return list(ctx, t.session, scanNumber, "SELECT "+numberColumns+" FROM phone_numbers n WHERE n.user_id = ? ORDER BY n.id", t.user)
}

// PhoneNumber is one line; inside a transaction it is locked until the end.
func (t *Tenant) PhoneNumber(ctx context.Context, id parley.ID) (*parley.PhoneNumber, error) {
	return one(ctx, t.session, "Phone number", scanNumber, "SELECT "+numberColumns+" FROM phone_numbers n WHERE n.user_id = ? AND n.id = ?"+t.forUpdate(), t.user, id)
}

// CreatePhoneNumber adds a line.
func (t *Tenant) CreatePhoneNumber(ctx context.Context, n *parley.PhoneNumber) error {
	n.UserID, n.CreatedAt = t.user, now()
	n.UpdatedAt = n.CreatedAt
	n.Available = n.Type != parley.CallerIDNumber
	var err error
	n.ID, err = t.insert(ctx, `INSERT INTO phone_numbers (user_id, phone_number, country_code, type_label, sip_trunk_id, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		t.user, n.Number, n.CountryCode, n.Type, n.TrunkID, n.CreatedAt.UnixMicro(), n.UpdatedAt.UnixMicro())
	return numberExists(err)
}

// SavePhoneNumber writes a changed line back.
func (t *Tenant) SavePhoneNumber(ctx context.Context, n *parley.PhoneNumber) error {
	n.UpdatedAt = now()
	result, err := t.exec(ctx, "UPDATE phone_numbers SET phone_number = ?, country_code = ?, type_label = ?, sip_trunk_id = ?, updated_at = ? WHERE user_id = ? AND id = ?",
		n.Number, n.CountryCode, n.Type, n.TrunkID, n.UpdatedAt.UnixMicro(), t.user, n.ID)
	return affected(result, numberExists(err), "Phone number")
}

func numberExists(err error) error {
	if !unique(err) {
		return err
	}
	var errs parley.FieldErrors
	errs.Add("phone_number", "The phone number has already been added.")
	return &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: errs}
}

// DeletePhoneNumber removes a line that no assistant and no campaign uses.
func (t *Tenant) DeletePhoneNumber(ctx context.Context, id parley.ID) error {
	return t.Tx(ctx, func(t *Tenant) error {
		if _, err := t.PhoneNumber(ctx, id); err != nil {
			return err
		}
		inUse, err := t.number(ctx, "SELECT COUNT(*) FROM assistants WHERE user_id = ? AND phone_number_id = ?", t.user, id)
		if err != nil {
			return err
		}
		if inUse > 0 {
			return &parley.Error{Code: parley.Conflict, Message: "The phone number is assigned to an assistant. Unassign it first."}
		}
		inUse, err = t.number(ctx, "SELECT COUNT(*) FROM campaign_numbers WHERE phone_number_id = ?", id)
		if err != nil {
			return err
		}
		if inUse > 0 {
			return &parley.Error{Code: parley.Conflict, Message: "The phone number is a line of a campaign. Remove it there first."}
		}
		result, err := t.exec(ctx, "DELETE FROM phone_numbers WHERE user_id = ? AND id = ?", t.user, id)
		return affected(result, err, "Phone number")
	})
}

func scanNumber(row scanner, n *parley.PhoneNumber) error {
	return row.Scan(&n.ID, &n.UserID, &n.Number, &n.CountryCode, &n.Type, &n.TrunkID, micros{&n.CreatedAt}, micros{&n.UpdatedAt}, &n.Available)
}

const (
	trunkColumns = "id, user_id, sip_address, transport, sip_username, sip_password, register, outbound_proxy, allowed_inbound_ips, calling_format, max_channels, calls_per_second, created_at, updated_at"

	// passwordColumn is what trunk passwords are sealed for.
	passwordColumn = "sip_trunks.sip_password"
)

// Trunks are the user's SIP trunks, oldest first.
func (t *Tenant) Trunks(ctx context.Context) ([]parley.Trunk, error) {
	return list(ctx, t.session, t.db.scanTrunk, "SELECT "+trunkColumns+" FROM sip_trunks WHERE user_id = ? ORDER BY id", t.user)
}

// Trunk is one SIP trunk; inside a transaction it is locked until the end.
func (t *Tenant) Trunk(ctx context.Context, id parley.ID) (*parley.Trunk, error) {
	return one(ctx, t.session, "SIP trunk", t.db.scanTrunk, "SELECT "+trunkColumns+" FROM sip_trunks WHERE user_id = ? AND id = ?"+t.forUpdate(), t.user, id)
}

// CreateTrunk adds a SIP trunk.
func (t *Tenant) CreateTrunk(ctx context.Context, trunk *parley.Trunk) error {
	password, allowed, err := t.db.sealTrunk(trunk)
	if err != nil {
		return err
	}
	trunk.UserID, trunk.CreatedAt = t.user, now()
	trunk.UpdatedAt = trunk.CreatedAt
	trunk.ID, err = t.insert(ctx, `INSERT INTO sip_trunks (user_id, sip_address, transport, sip_username, sip_password, register, outbound_proxy, allowed_inbound_ips, calling_format, max_channels, calls_per_second, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		t.user, trunk.Address, trunk.Transport, trunk.Username, password, trunk.Register, trunk.OutboundProxy, allowed, trunk.CallingFormat, trunk.MaxChannels, trunk.CallsPerSecond,
		trunk.CreatedAt.UnixMicro(), trunk.UpdatedAt.UnixMicro())
	return err
}

// SaveTrunk writes a changed trunk back.
func (t *Tenant) SaveTrunk(ctx context.Context, trunk *parley.Trunk) error {
	password, allowed, err := t.db.sealTrunk(trunk)
	if err != nil {
		return err
	}
	trunk.UpdatedAt = now()
	result, err := t.exec(ctx, `UPDATE sip_trunks SET sip_address = ?, transport = ?, sip_username = ?, sip_password = ?, register = ?, outbound_proxy = ?, allowed_inbound_ips = ?, calling_format = ?, max_channels = ?, calls_per_second = ?, updated_at = ?
		WHERE user_id = ? AND id = ?`,
		trunk.Address, trunk.Transport, trunk.Username, password, trunk.Register, trunk.OutboundProxy, allowed, trunk.CallingFormat, trunk.MaxChannels, trunk.CallsPerSecond,
		trunk.UpdatedAt.UnixMicro(), t.user, trunk.ID)
	return affected(result, err, "SIP trunk")
}

// DeleteTrunk removes a trunk that carries no line.
func (t *Tenant) DeleteTrunk(ctx context.Context, id parley.ID) error {
	return t.Tx(ctx, func(t *Tenant) error {
		if _, err := t.Trunk(ctx, id); err != nil {
			return err
		}
		inUse, err := t.number(ctx, "SELECT COUNT(*) FROM phone_numbers WHERE user_id = ? AND sip_trunk_id = ?", t.user, id)
		if err != nil {
			return err
		}
		if inUse > 0 {
			return &parley.Error{Code: parley.Conflict, Message: "The SIP trunk carries phone numbers. Move or delete them first."}
		}
		result, err := t.exec(ctx, "DELETE FROM sip_trunks WHERE user_id = ? AND id = ?", t.user, id)
		return affected(result, err, "SIP trunk")
	})
}

func (db *DB) sealTrunk(trunk *parley.Trunk) (password []byte, allowed string, err error) {
	if password, err = db.keys.seal([]byte(trunk.Password), passwordColumn); err != nil {
		return nil, "", err
	}
	document, err := json.Marshal(trunk.AllowedInbound)
	return password, string(document), err
}

func (db *DB) scanTrunk(row scanner, trunk *parley.Trunk) error {
	var password, allowed []byte
	err := row.Scan(&trunk.ID, &trunk.UserID, &trunk.Address, &trunk.Transport, &trunk.Username, &password, &trunk.Register, &trunk.OutboundProxy, &allowed,
		&trunk.CallingFormat, &trunk.MaxChannels, &trunk.CallsPerSecond, micros{&trunk.CreatedAt}, micros{&trunk.UpdatedAt})
	if err != nil {
		return err
	}
	plain, _, err := db.keys.open(password, passwordColumn)
	if err != nil {
		return err
	}
	trunk.Password = string(plain)
	return json.Unmarshal(allowed, &trunk.AllowedInbound)
}
