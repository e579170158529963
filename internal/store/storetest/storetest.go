// Package storetest gives tests real databases of both kinds: SQLite in a temporary
// folder, and PostgreSQL in a throw-away cluster that a test binary starts on first
// use and stops at its end.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
)

// Main runs a package's tests and then stops the cluster, if one was started.
// A package that uses this one calls it from TestMain.
func Main(m *testing.M) { os.Exit(M{m}.Run()) }

// M is a package's tests with the stop of the cluster, for who looks at what they leave.
type M struct{ *testing.M }

// Run runs the tests and then stops the cluster, if one was started.
func (m M) Run() int {
	code := m.M.Run()
	Stop()
	return code
}

// Stop stops the cluster, for a TestMain that has more to do after its tests.
func Stop() { stopCluster() }

// Each runs a test on a fresh database of each kind.
func Each(t *testing.T, run func(t *testing.T, db *store.DB)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		run(t, Open(t, SQLite(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		run(t, Open(t, Postgres(t)))
	})
}

// Open opens a database until the end of a test.
func Open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// testKey is not secret: it seals nothing but tests' secrets.
const testKey = "cGFybGV5IHBhcmxleSBwYXJsZXkgcGFybGV5ISEhISE="

func keys(t testing.TB) *store.Keys {
	t.Helper()
	k, err := store.ParseKeys(testKey)
	require.NoError(t, err)
	return k
}

// sqliteTemplate is a migrated database file, made once a test binary.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "parley-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := prepare(store.Options{Dir: dir}); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, store.FileName))
})

// prepare migrates a database and fills its catalogue.
func prepare(o store.Options) error {
	ctx := context.Background()
	var err error
	if o.Keys, err = store.ParseKeys(testKey); err != nil {
		return err
	}
	db, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	if err := db.Migrate(ctx, nil); err != nil {
		return err
	}
	if err := db.System().SeedCatalogue(ctx); err != nil {
		return err
	}
	return db.Close()
}

// SQLite is a migrated SQLite database with its catalogue and no users.
func SQLite(t testing.TB) store.Options {
	t.Helper()
	template, err := sqliteTemplate()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, store.FileName), template, 0o600))
	return store.Options{Dir: dir, Keys: keys(t)}
}

var databases atomic.Int64

// Postgres is a migrated PostgreSQL database with its catalogue and no users.
func Postgres(t testing.TB) store.Options {
	t.Helper()
	return store.Options{URL: createDatabase(t, postgresTemplate), Dir: t.TempDir(), Keys: keys(t)}
}

// EmptyPostgres is the address of a PostgreSQL database without any schema.
func EmptyPostgres(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "template0")
}

const postgresTemplate = "parley_template"

func createDatabase(t testing.TB, template string) string {
	t.Helper()
	c := startedCluster(t)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	require.NoError(t, c.exec(fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template)))
	t.Cleanup(func() { require.NoError(t, c.exec("DROP DATABASE "+name+" WITH (FORCE)")) })
	return c.url(name)
}

// User adds a user with a token.
func User(t testing.TB, db *store.DB, email string) (*parley.User, string) {
	t.Helper()
	user, err := parley.NewUser(email, "", "unlimited")
	require.NoError(t, err)
	require.NoError(t, db.System().CreateUser(t.Context(), user))
	token, err := db.Tenant(user.ID).CreateToken(t.Context(), &parley.Token{Name: "test"})
	require.NoError(t, err)
	return user, token
}

// Assistant is a valid assistant, not yet stored.
func Assistant(name string) *parley.Assistant {
	a := &parley.Assistant{Name: name, Type: parley.Outbound, Mode: parley.Pipeline, VoiceID: 1, LanguageID: 1, LLMModelID: 1}
	parley.AssistantForm.SetDefaults(a)
	a.Language, a.LLMModel, a.Timezone = "English", "sandbox", "Europe/Berlin"
	a.InitialMessage, a.SystemPrompt = "Hello.", "Be brief."
	return a
}

// Campaign is a stored campaign of a user's, with an assistant of its own.
func Campaign(t testing.TB, tenant *store.Tenant, name string) *parley.Campaign {
	t.Helper()
	a := Assistant("Caller")
	require.NoError(t, tenant.CreateAssistant(t.Context(), a))
	c, _, errs := parley.CreateCampaign(parley.Input{"name": name, "assistant_id": json.Number(strconv.FormatInt(a.ID, 10)), "timezone": "Europe/Berlin"})
	require.Empty(t, errs)
	require.NoError(t, tenant.CreateCampaign(t.Context(), c))
	return c
}

// Lead is a stored lead of a campaign, with these numbers besides its own.
func Lead(t testing.TB, tenant *store.Tenant, campaign parley.ID, number string, others ...string) *parley.Lead {
	t.Helper()
	in := parley.Input{"campaign_id": json.Number(strconv.FormatInt(campaign, 10)), "phone_number": number}
	contacts := []any{}
	for _, other := range others {
		contacts = append(contacts, map[string]any{"phone_number": other})
	}
	in["secondary_contacts"] = contacts
	l, errs := parley.CreateLead(in)
	require.Empty(t, errs)
	require.NoError(t, tenant.CreateLead(t.Context(), l))
	return l
}
