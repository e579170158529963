package store

import (
	"context"
	"fmt"

	"parley"
)

const userColumns = "u.id, u.email, u.name, u.plan, u.created_at"

// CreateUser adds a user.
func (s *System) CreateUser(ctx context.Context, u *parley.User) error {
	u.CreatedAt = now()
	var err error
	u.ID, err = s.insert(ctx, "INSERT INTO users (email, name, plan, created_at) VALUES (?, ?, ?, ?) RETURNING id", u.Email, u.Name, u.Plan, u.CreatedAt.UnixMicro())
	if unique(err) {
		return &parley.Error{Code: parley.Conflict, Message: fmt.Sprintf("there is already a user %s", u.Email)}
	}
	return err
}

// SetPlan gives a user another plan.
func (s *System) SetPlan(ctx context.Context, id parley.ID, plan string) error {
	result, err := s.exec(ctx, "UPDATE users SET plan = ? WHERE id = ?", plan, id)
	return affected(result, err, "User")
}

// Users are all users.
func (s *System) Users(ctx context.Context) ([]parley.User, error) {
	return list(ctx, s.session, scanUser, "SELECT "+userColumns+" FROM users u ORDER BY u.id")
}

// UserByEmail is the user with this address.
func (s *System) UserByEmail(ctx context.Context, email string) (*parley.User, error) {
	return one(ctx, s.session, "User", scanUser, "SELECT "+userColumns+" FROM users u WHERE u.email = ?", email)
}

// Authenticate is the user of a token; without one it is a not-found error.
func (s *System) Authenticate(ctx context.Context, token string) (*parley.User, error) {
	return one(ctx, s.session, "Token", scanUser,
		"SELECT "+userColumns+" FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.hash = ? AND t.revoked_at IS NULL", parley.HashToken(token))
}

func scanUser(row scanner, u *parley.User) error {
	return row.Scan(&u.ID, &u.Email, &u.Name, &u.Plan, micros{&u.CreatedAt})
}

// CreateToken adds a token and returns its text, which is kept nowhere.
func (t *Tenant) CreateToken(ctx context.Context, token *parley.Token) (text string, err error) {
	return t.addToken(ctx, token, "")
}

// addToken adds a token whose text is given, or made when it is not. The text of a
// made token begins with its id, so the row comes first, with a hash that nothing matches.
func (t *Tenant) addToken(ctx context.Context, token *parley.Token, text string) (string, error) {
	token.UserID, token.CreatedAt = t.user, now()
	secret := parley.NewSecret()
	err := t.Tx(ctx, func(t *Tenant) error {
		var err error
		token.ID, err = t.insert(ctx, "INSERT INTO tokens (user_id, name, hash, created_at) VALUES (?, ?, ?, ?) RETURNING id",
			t.user, token.Name, parley.HashToken(secret), token.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		if text == "" {
			text = parley.TokenText(token.ID, secret)
		}
		_, err = t.exec(ctx, "UPDATE tokens SET hash = ? WHERE id = ?", parley.HashToken(text), token.ID)
		return err
	})
	return text, err
}

// Tokens are the user's live tokens, oldest first.
func (t *Tenant) Tokens(ctx context.Context) ([]parley.Token, error) {
	return list(ctx, t.session, scanToken, "SELECT id, user_id, name, created_at, revoked_at FROM tokens WHERE user_id = ? AND revoked_at IS NULL ORDER BY id", t.user)
}

// RevokeToken ends a token: the next request with it is refused.
func (t *Tenant) RevokeToken(ctx context.Context, id parley.ID) error {
	result, err := t.exec(ctx, "UPDATE tokens SET revoked_at = ? WHERE user_id = ? AND id = ? AND revoked_at IS NULL", now().UnixMicro(), t.user, id)
	return affected(result, err, "API key")
}

// Tokens are everybody's tokens, revoked ones too.
func (s *System) Tokens(ctx context.Context) ([]parley.Token, error) {
	return list(ctx, s.session, scanToken, "SELECT id, user_id, name, created_at, revoked_at FROM tokens ORDER BY id")
}

// RevokeToken ends anybody's token.
func (s *System) RevokeToken(ctx context.Context, id parley.ID) error {
	result, err := s.exec(ctx, "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", now().UnixMicro(), id)
	return affected(result, err, "Token")
}

func scanToken(row scanner, token *parley.Token) error {
	return row.Scan(&token.ID, &token.UserID, &token.Name, micros{&token.CreatedAt}, nullMicros{&token.RevokedAt})
}

// FirstUser is who an empty database is made for.
var FirstUser = parley.User{Email: "admin@localhost", Name: "Admin", Plan: parley.DefaultPlan}

// firstNumbers are simulated lines, from ranges kept for fiction, so that a
// newcomer has something to assign.
var firstNumbers = []parley.PhoneNumber{
	{Number: "+12025550180", CountryCode: "US", Type: parley.NormalNumber},
	{Number: "+12025550181", CountryCode: "US", Type: parley.NormalNumber},
	{Number: "+442079460180", CountryCode: "GB", Type: parley.NormalNumber},
	{Number: "+12025550182", CountryCode: "US", Type: parley.SIPNumber},
	{Number: "+442079460182", CountryCode: "GB", Type: parley.SIPNumber},
	{Number: "+12025550184", CountryCode: "US", Type: parley.CallerIDNumber},
	{Number: "+442079460184", CountryCode: "GB", Type: parley.CallerIDNumber},
}

// Begin gives an empty database its first user, whose token is the given one or a
// new one. In a database that has users it does nothing and returns "".
func (s *System) Begin(ctx context.Context, token string) (text string, err error) {
	err = s.Tx(ctx, func(s *System) error {
		if s.db.postgres {
			// Two servers may meet the same empty database.
			if _, err := s.exec(ctx, "LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		n, err := s.number(ctx, "SELECT COUNT(*) FROM users")
		if err != nil || n > 0 {
			return err
		}
		user := FirstUser
		if err := s.CreateUser(ctx, &user); err != nil {
			return err
		}
		tenant := &Tenant{session: s.session, user: user.ID}
		for _, number := range firstNumbers {
			if err := tenant.CreatePhoneNumber(ctx, &number); err != nil {
				return err
			}
		}
		text, err = tenant.addToken(ctx, &parley.Token{Name: "first"}, token)
		return err
	})
	return text, err
}
