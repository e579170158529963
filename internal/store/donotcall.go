package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strconv"

	"parley"
)

// secretColumn is what the installation's own keys are sealed for.
const secretColumn = "secrets.secret"

// secret is one of the installation's own keys, made when it is first asked for. It
// lies sealed in the database and so outlives a change of the sealing keys.
func (s session) secret(ctx context.Context, name string) ([]byte, error) {
	read := func() ([]byte, error) {
		sealed, err := one(ctx, s, "Secret", func(row scanner, b *[]byte) error { return row.Scan(b) }, "SELECT secret FROM secrets WHERE name = ?", name)
		if err != nil {
			return nil, err
		}
		plain, _, err := s.db.keys.open(*sealed, secretColumn)
		return plain, err
	}
	plain, err := read()
	if parley.ErrorCode(err) != parley.NotFound {
		return plain, err
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	sealed, err := s.db.keys.seal(fresh, secretColumn)
	if err != nil {
		return nil, err
	}
	if _, err := s.exec(ctx, "INSERT INTO secrets (name, secret) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, sealed); err != nil {
		return nil, err
	}
	return read() // another may have been first
}

// suppressor recognises a user's numbers by their keyed hashes. Without the key a
// hash tells nothing: there are few enough numbers to try them all.
func (t *Tenant) suppressor(ctx context.Context) (func(number string) []byte, error) {
	key, err := t.secret(ctx, "do-not-call")
	if err != nil {
		return nil, err
	}
	prefix := strconv.FormatInt(t.user, 10) + ":" // so that no two users' hashes can be compared
	return func(number string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(prefix + number))
		return mac.Sum(nil)
	}, nil
}

// The classes of PostgreSQL's advisory locks, on users' lists and on campaigns' imports.
const (
	doNotCallLock = 0x646e63
	importLock    = 0x696d70
)

// advise takes an advisory lock until the end of the transaction. SQLite's one writer
// needs none.
func (t *Tenant) advise(ctx context.Context, lock string, class int, key parley.ID) error {
	if t.tx == nil || !t.db.postgres {
		return nil
	}
	_, err := t.exec(ctx, "SELECT "+lock+"(CAST(? AS INTEGER), CAST(? AS INTEGER))", class, key%(1<<31))
	return err
}

// lockDoNotCall orders a transaction against those that list a number: one that asked
// whether a number may be called commits before the number is listed, or sees it. It comes
// before the locks of leads.
func (t *Tenant) lockDoNotCall(ctx context.Context, lock string) error {
	return t.advise(ctx, lock, doNotCallLock, t.user)
}

// DoNotCall says which of the numbers must not be called. Inside a transaction the
// answer holds until its end; one that will list a number too must do that first.
func (t *Tenant) DoNotCall(ctx context.Context, numbers ...string) (map[string]bool, error) {
	listed := map[string]bool{}
	if len(numbers) == 0 {
		return listed, nil
	}
	if err := t.lockDoNotCall(ctx, "pg_advisory_xact_lock_shared"); err != nil {
		return nil, err
	}
	hash, err := t.suppressor(ctx)
	if err != nil {
		return nil, err
	}
	byHash := make(map[string]string, len(numbers))
	hashes := make([][]byte, len(numbers))
	for i, number := range numbers {
		hashes[i] = hash(number)
		byHash[string(hashes[i])] = number
	}
	args := padded(hashes)
	found, err := list(ctx, t.session, func(row scanner, h *[]byte) error { return row.Scan(h) },
		"SELECT hash FROM do_not_call WHERE user_id = ? AND hash IN ("+placeholders(len(args))+")", append([]any{t.user}, args...)...)
	if err != nil {
		return nil, err
	}
	for _, h := range found {
		listed[byHash[string(h)]] = true
	}
	return listed, nil
}

// AddDoNotCall lists a number, and ends the user's leads that have it.
func (t *Tenant) AddDoNotCall(ctx context.Context, number, reason string) error {
	return t.AddAllDoNotCall(ctx, []string{number}, reason)
}

// AddAllDoNotCall lists several numbers. One that is listed already keeps its reason
// and, if it had been erased, is known again.
func (t *Tenant) AddAllDoNotCall(ctx context.Context, numbers []string, reason string) error {
	return t.Tx(ctx, func(t *Tenant) error {
		if err := t.lockDoNotCall(ctx, "pg_advisory_xact_lock"); err != nil {
			return err
		}
		hash, err := t.suppressor(ctx)
		if err != nil {
			return err
		}
		at := now().UnixMicro()
		for _, number := range numbers {
			_, err := t.exec(ctx, `INSERT INTO do_not_call (user_id, phone_number, hash, reason, created_at) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (user_id, hash) DO UPDATE SET phone_number = excluded.phone_number`, t.user, number, hash(number), reason, at)
			if err != nil {
				return err
			}
		}
		return t.blacklist(ctx, numbers, at)
	})
}

// leadsOf selects the ids of a user's leads that have one of n numbers.
func leadsOf(n int) string {
	in := "user_id = ? AND phone_number IN (" + placeholders(n) + ")"
	return "SELECT id FROM leads WHERE " + in + " UNION SELECT lead_id FROM lead_contacts WHERE " + in
}

// blacklist ends every lead that has one of the numbers, whatever its state and
// whichever of its contacts it is. The leads change in one statement: in several,
// two transactions could wait for each other at a campaign's counts.
func (t *Tenant) blacklist(ctx context.Context, numbers []string, at int64) error {
	const blacklisted = string(parley.LeadBlacklisted)
	wanted := padded(numbers)
	these, which := leadsOf(len(wanted)), slices.Concat([]any{t.user}, wanted, []any{t.user}, wanted)
	_, err := t.exec(ctx, "UPDATE leads SET status = ?, updated_at = ? WHERE id IN ("+these+") AND status <> ?", slices.Concat([]any{blacklisted, at}, which, []any{blacklisted})...)
	if err != nil {
		return err
	}
	// Contacts that wait for another round end with their lead; those never tried stay as they are.
	_, err = t.exec(ctx, "UPDATE lead_contacts SET status = ?, updated_at = ? WHERE lead_id IN ("+these+") AND status <> ? AND (status IN (?, ?) OR phone_number IN ("+placeholders(len(wanted))+"))",
		slices.Concat([]any{blacklisted, at}, which, []any{blacklisted, string(parley.LeadProcessing), string(parley.LeadRescheduled)}, wanted)...)
	return err
}

// RemoveDoNotCall takes numbers off the list, if all of them are on it. Leads stay
// as they became: who is called again is for their owner to say.
func (t *Tenant) RemoveDoNotCall(ctx context.Context, numbers ...string) error {
	return t.Tx(ctx, func(t *Tenant) error {
		hash, err := t.suppressor(ctx)
		if err != nil {
			return err
		}
		for _, number := range numbers {
			result, err := t.exec(ctx, "DELETE FROM do_not_call WHERE user_id = ? AND hash = ?", t.user, hash(number))
			if err := affected(result, err, "Phone number"); err != nil {
				return err
			}
		}
		return nil
	})
}

// DoNotCallList is a part of the user's list, newest first, and how long it is. A
// number narrows it to that one's entry.
func (t *Tenant) DoNotCallList(ctx context.Context, number string, limit, offset int) ([]parley.DoNotCall, int, error) {
	clause, args := "user_id = ?", []any{t.user}
	if number != "" {
		hash, err := t.suppressor(ctx)
		if err != nil {
			return nil, 0, err
		}
		clause, args = clause+" AND hash = ?", append(args, hash(number))
	}
	total, err := t.number(ctx, "SELECT COUNT(*) FROM do_not_call WHERE "+clause, args...)
	if err != nil {
		return nil, 0, err
	}
	page, err := list(ctx, t.session, func(row scanner, d *parley.DoNotCall) error {
		return row.Scan(&d.ID, &d.UserID, &d.PhoneNumber, &d.Reason, micros{&d.CreatedAt})
	}, "SELECT id, user_id, phone_number, reason, created_at FROM do_not_call WHERE "+clause+" ORDER BY id DESC LIMIT CAST(? AS BIGINT) OFFSET CAST(? AS BIGINT)",
		append(args, limit, offset)...)
	return page, int(total), err
}

// padded are values as arguments, the last one repeated up to a power of two: a
// statement is compiled for each count it is asked with.
func padded[T any](values []T) []any {
	args := make([]any, 0, 2*len(values))
	for _, v := range values {
		args = append(args, v)
	}
	for len(args)&(len(args)-1) != 0 {
		args = append(args, args[len(args)-1])
	}
	return args
}
