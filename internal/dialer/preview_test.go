package dialer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// More leads than a preview holds at a time, and the room of the first is not given again.
func TestPreviewOfAStoredCampaign(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		c := storetest.Campaign(t, tenant, "Spring")
		storetest.Campaign(t, tenant, "Summer")
		for range 2 {
			progress, err := tenant.Campaign(ctx, c.ID)
			require.NoError(t, err)
			batch := make([]store.NewLead, 3000)
			for i := range batch {
				batch[i] = store.NewLead{PhoneNumber: fmt.Sprintf("+1202%07d", progress.Progress.Total+i), Variables: "{}"}
			}
			_, _, err = tenant.ImportLeads(ctx, c.ID, batch)
			require.NoError(t, err)
		}
		spent := storetest.Lead(t, tenant, c.ID, "+12025550100", "+12025550101")
		spent.Attempts = c.MaxAttempts()
		require.NoError(t, tenant.SaveLead(ctx, spent))
		done := storetest.Lead(t, tenant, c.ID, "+12025550102")
		done.Status = parley.LeadCompleted
		require.NoError(t, tenant.SaveLead(ctx, done))

		f, err := dialer.PreviewStored(ctx, db, dialer.Sandbox, user.ID, c.ID)
		require.NoError(t, err)
		require.Equal(t, parley.Forecast{Now: 3, Later: 5997, Never: 1, Why: map[string]int{"campaign-full": 5997, "max-retries": 1}}, f)
		_, err = dialer.PreviewStored(ctx, db, dialer.Sandbox, user.ID+1, c.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
	})
}
