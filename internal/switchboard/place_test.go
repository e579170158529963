package switchboard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/sip/siptest"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/switchboard"
)

// A call of which nothing was sent, because we had not what it takes, is placed when we
// have: it has not been dialled before.
func TestACallWaitsForItsEquipment(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, func(c *switchboard.Config) {
			var asked atomic.Int64
			equip := c.Equip
			c.Equip = func(ctx context.Context, a *parley.Assistant) (converse.Config, error) {
				if asked.Add(1) <= 3 {
					return converse.Config{}, errors.New("the database takes no more connections")
				}
				return equip(ctx, a)
			}
		})
		c := o.ends(o.asks("+12025550101"))
		ended(t, c, parley.CallBusy, parley.EndBusy)
		require.NotNil(t, c.DialedAt)
	})
}

func TestACallWaitsForAPort(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		port := uint16(siptest.Ports(t))
		engine, err := media.New(media.Config{PortMin: port, PortMax: port + 1, PortQuarantine: time.Nanosecond})
		require.NoError(t, err)
		t.Cleanup(engine.Close)
		o := openOffice(t, db, func(c *switchboard.Config) { c.Telephone.Media = engine })
		first := o.asks("+12025550102") // rings, and has the only port
		o.becomes(first, parley.CallRinging)
		second := o.asks("+12025550101")
		o.awaits(second, "given back", func(c *parley.Call) bool {
			return c.UpdatedAt.After(c.CreatedAt) && c.DialedAt == nil
		})
		o.hangsUp(first)
		ended(t, o.ends(second), parley.CallBusy, parley.EndBusy)
	})
}

// One that waits is asked about again before it leaves: a campaign may have been stopped.
func TestACallThatWaitsCanStillBeStopped(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var stopped atomic.Bool
		o := openOffice(t, db, func(c *switchboard.Config) {
			equip := c.Equip
			c.Equip = func(ctx context.Context, a *parley.Assistant) (converse.Config, error) {
				if stopped.CompareAndSwap(false, true) {
					return converse.Config{}, errors.New("the database takes no more connections")
				}
				return equip(ctx, a)
			}
			c.Recheck = func(context.Context, *store.System, *parley.Call) (parley.EndReason, error) {
				if stopped.Load() {
					return parley.EndCampaign, nil
				}
				return "", nil
			}
		})
		c := o.ends(o.asks("+12025550101"))
		ended(t, c, parley.CallFailed, parley.EndCampaign)
		require.Nil(t, c.DialedAt)
	})
}

// One that has waited for too long is over, and was never dialled: its lead keeps the attempt.
func TestACallThatCannotBePlacedWasNotDialled(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := openOffice(t, db, func(c *switchboard.Config) {
			c.Equip = func(context.Context, *parley.Assistant) (converse.Config, error) {
				return converse.Config{}, errors.New("no voice")
			}
		})
		var id parley.ID
		require.NoError(t, db.Tenant(o.user.ID).Tx(t.Context(), func(tenant *store.Tenant) error {
			c := &parley.Call{AssistantID: o.assistant.ID, AssistantName: "Front desk", Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: "+12025550101", Carrier: parley.CarrierSimulated}
			if err := tenant.CreateCall(t.Context(), c, ""); err != nil {
				return err
			}
			id = c.ID
			aMinuteAgo := fmt.Sprintf("UPDATE calls SET created_at = created_at - %d WHERE id = %d", time.Minute.Microseconds(), c.ID)
			if _, err := tenant.SQLTx().Exec(aMinuteAgo); err != nil {
				return err
			}
			return o.queue.Dial(t.Context(), tenant.System(), c.ID)
		}))
		c := o.ends(id)
		ended(t, c, parley.CallFailed, parley.EndInternal)
		require.Nil(t, c.DialedAt)
	})
}
