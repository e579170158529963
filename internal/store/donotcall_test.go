package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestDoNotCallIsEachUsersOwn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a, _ := storetest.User(t, db, "a@example.com")
		b, _ := storetest.User(t, db, "b@example.com")
		require.NoError(t, db.Tenant(a.ID).AddDoNotCall(ctx, "+12025550108", "spoken"))
		require.NoError(t, db.Tenant(a.ID).AddDoNotCall(ctx, "+12025550108", "again"))

		listed, err := db.Tenant(a.ID).DoNotCall(ctx, "+12025550101", "+12025550108", "+12025550109")
		require.NoError(t, err)
		require.Equal(t, map[string]bool{"+12025550108": true}, listed)
		listed, err = db.Tenant(b.ID).DoNotCall(ctx, "+12025550108")
		require.NoError(t, err)
		require.Empty(t, listed)

		page, total, err := db.Tenant(a.ID).DoNotCallList(ctx, "", 10, 0)
		require.NoError(t, err)
		require.Equal(t, 1, total)
		require.Equal(t, "spoken", page[0].Reason)
		require.Equal(t, parley.NotFound, parley.ErrorCode(db.Tenant(b.ID).RemoveDoNotCall(ctx, "+12025550108")))
		require.NoError(t, db.Tenant(a.ID).RemoveDoNotCall(ctx, "+12025550108"))
		listed, err = db.Tenant(a.ID).DoNotCall(ctx, "+12025550108")
		require.NoError(t, err)
		require.Empty(t, listed)
	})
}

// The key of the hashes is sealed: it is made once, whoever asks first, and outlives
// a change of the sealing keys.
func TestSuppressionOutlivesTheSealingKeys(t *testing.T) {
	storetest.Each(t, func(t *testing.T, prepared *store.DB) {
		ctx := t.Context()
		path := t.TempDir() + "/secret.key"
		keys := mustKeys(t, path)
		db := reopen(t, prepared, keys)
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		won := race(8, func() error { return tenant.AddDoNotCall(t.Context(), "+12025550108", "api") })
		require.Equal(t, 8, won)
		require.NoError(t, keys.Rotate())
		resealed, err := db.System().Reseal(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, 1, resealed)
		listed, err := reopen(t, prepared, mustKeys(t, path)).Tenant(user.ID).DoNotCall(ctx, "+12025550108")
		require.NoError(t, err)
		require.True(t, listed["+12025550108"])
	})
}
