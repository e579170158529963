package dialer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Eight workers race to call the same people for three campaigns of an account, and every
// call ends with the wish not to be called again: nobody who said so is dialled after it
// was written down.
func TestPromiseG5AnOptOutIsFinalAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		people := promise.Figure(20, 200)
		s := newSite(t, db)
		var campaigns []*parley.Campaign
		for range 3 {
			c := s.campaign(parley.Input{"max_calls_in_parallel": 20})
			s.leads(c, 1, people)
			campaigns = append(campaigns, c)
		}
		type dial struct {
			number string
			at     time.Time // when it was asked whether the call may leave
		}
		var mu sync.Mutex
		var dials []dial
		final := map[string]time.Time{} // when the opt-out was acknowledged
		var wait sync.WaitGroup
		// Two plans that each found a number in the other's call put its leads off for seconds.
		end := time.Now().Add(time.Minute)
		for range 8 {
			d := node(t, db)
			wait.Go(func() {
				for time.Now().Before(end) {
					_, carryOut, err := d.Planned(context.Background(), time.Now())
					if err == nil {
						err = carryOut()
					}
					calls, _, listErr := db.Tenant(s.user).Calls(context.Background(), store.CallFilter{Status: string(parley.CallInitiated), Limit: 50})
					if err != nil || listErr != nil {
						t.Error(err, listErr)
						return
					}
					for i := range calls {
						at := time.Now()
						reason, err := dialOn(context.Background(), d, calls[i].ID)
						if err != nil {
							t.Error(err)
							return
						}
						if reason != "" {
							continue
						}
						mu.Lock()
						dials = append(dials, dial{calls[i].CustomerNumber, at})
						mu.Unlock()
						if err := endOn(context.Background(), d, calls[i].ID, optedOut); err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						final[calls[i].CustomerNumber] = time.Now()
						mu.Unlock()
					}
					mu.Lock()
					over := len(final) == people
					mu.Unlock()
					if over {
						return
					}
				}
			})
		}
		wait.Wait()
		require.Len(t, final, people)
		require.Len(t, dials, people, "everybody was called once")
		for _, d := range dials {
			require.False(t, d.at.After(final[d.number]), d.number)
		}
		for _, c := range campaigns {
			require.Equal(t, people, s.state(c.ID).Progress.Blacklisted)
		}
	})
}
